import type { DocumentTree, Standing } from '../documents/index.ts'
import { SinkError } from '../sink.ts'
import type { GitRepository } from './repository.ts'

/** The files of one commit; of none, where there is no commit yet. */
export class GitTree implements DocumentTree {
  readonly #repository: GitRepository
  readonly #commit: string | undefined

  constructor(repository: GitRepository, commit: string | undefined) {
    this.#repository = repository
    this.#commit = commit
  }

  async read(path: string, maxBytes: number, signal: AbortSignal): Promise<string | undefined> {
    return this.#commit === undefined ? undefined : this.#repository.read(this.#commit, path, maxBytes, signal)
  }

  /** The object of each file. @throws SinkError terminal, where a folder stands where a file is to be, or the other way round */
  async files(paths: readonly string[], signal: AbortSignal): Promise<ReadonlyMap<string, string>> {
    if (this.#commit === undefined) return new Map()
    const folders = new Set(paths.flatMap(foldersOf))
    const found = await this.#repository.entries(this.#commit, [...paths, ...folders], signal)
    const files = new Map<string, string>()
    for (const [path, { id, type }] of found) {
      const isFolder = folders.has(path)
      if (isFolder !== (type === 'tree'))
        throw new SinkError(
          'terminal',
          `${path} is a ${isFolder ? 'file' : 'folder'} in the branch, and stands where documents are to be: change the path template`,
        )
      if (!isFolder) files.set(path, id)
    }
    return files
  }

  async existing(paths: readonly string[], signal: AbortSignal): Promise<Standing> {
    return new Map([...(await this.files(paths, signal)).keys()].map((path) => [path, {}]))
  }

  async *manifests(maxBytes: number, signal: AbortSignal): AsyncIterable<readonly [string, string]> {
    if (this.#commit === undefined) return
    const paths = await this.#repository.pathsEndingWith(this.#commit, '.manifest.json', signal)
    for (const [path, { size }] of await this.#repository.entries(this.#commit, paths, signal))
      if (size <= maxBytes) yield [path, (await this.#repository.read(this.#commit, path, maxBytes, signal)) ?? '']
  }
}

const foldersOf = (path: string): string[] =>
  path
    .split('/')
    .slice(0, -1)
    .map((_, i, all) => all.slice(0, i + 1).join('/'))
