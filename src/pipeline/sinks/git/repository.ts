import { chmod, mkdir, rm, stat } from 'node:fs/promises'
import { tooLarge } from '../documents/index.ts'
import { SinkError } from '../sink.ts'
import { type GitAccess, localEnvironment } from './access.ts'
import { ACCESS_SUFFIX } from './caches.ts'
import { cannotWrite, gitFailure, isUnreachable } from './failure.ts'
import { type GitEnd, type GitRun, runGit } from './process.ts'
import type { GitRemote } from './remote.ts'

/** What stands at a path of a commit. */
export interface TreeEntry {
  readonly id: string
  /** bytes */
  readonly size: number
  readonly type: 'blob' | 'tree' | 'commit'
}

export interface CommitChange {
  readonly message: string
  readonly author: { readonly name: string; readonly email: string }
  /** seconds since 1970 */
  readonly at: number
  readonly removed: readonly string[]
  readonly files: Iterable<{ readonly path: string; readonly text: string }>
}

export type Push =
  | { readonly kind: 'pushed' }
  | { readonly kind: 'overtaken' }
  | { readonly kind: 'refused'; readonly stderr: string }

/** The cache cannot be used: it is thrown away, and the call made again. */
export class GitCacheError extends SinkError {
  constructor(message: string) {
    super('transient', message)
  }
}

const TIP = 'refs/sink/tip'
const NEXT = 'refs/sink/next'

/** A bare cache of one branch of one remote. Nothing in it is of value: what cannot be used is thrown away and fetched again. */
export class GitRepository {
  readonly #remote: GitRemote
  readonly #directory: string
  readonly #secrets: readonly string[]

  constructor(remote: GitRemote, directory: string, secrets: readonly string[]) {
    this.#remote = remote
    this.#directory = directory
    this.#secrets = secrets
  }

  /** Makes it, or what is left of it anew. @throws SinkError terminal, where the folder is somebody else's */
  async open(signal: AbortSignal): Promise<void> {
    await mkdir(this.#directory, { recursive: true, mode: 0o700 })
    const { uid, mode } = await stat(this.#directory)
    if (process.getuid && uid !== process.getuid())
      throw new SinkError(
        'terminal',
        'the folder of caches belongs to another user: give the process a folder of its own',
      )
    if ((mode & 0o077) !== 0) await chmod(this.#directory, 0o700)
    const { code, stdout } = await this.#local(['rev-parse', '--git-dir'], { signal })
    if (code === 0 && stdout.toString().trim() !== '') return
    await rm(this.#directory, { recursive: true, force: true })
    await mkdir(this.#directory, { recursive: true, mode: 0o700 })
    await this.#must(['init', '--quiet', '--bare'], { signal })
  }

  /**
   * Fetches the tip of the branch; where there is no such branch, that of the default branch, from which it begins.
   * @returns undefined for a repository without any commit
   * @throws SinkError
   */
  async fetchTip(
    access: GitAccess,
    depth: number,
    mayBegin: boolean,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const fetched = async (ref: string) => {
      const args = ['fetch', '--quiet', '--no-tags', '--no-write-fetch-head', '--no-auto-gc', '--no-recurse-submodules']
      const end = await this.#withRemote(
        [...args, `--depth=${depth}`, '--', this.#remote.url, `+${ref}:${TIP}`],
        access,
        signal,
      )
      if (end.code === 0) return (await this.#must(['rev-parse', TIP], { signal })).toString().trim()
      if (/couldn't find remote ref|no matching remote head/i.test(end.stderr)) return undefined
      throw gitFailure(end.stderr, this.#remote, this.#secrets)
    }
    const tip = await fetched(`refs/heads/${this.#remote.branch}`)
    if (tip !== undefined) return tip
    if (!mayBegin)
      throw new SinkError(
        'terminal',
        `the branch ${this.#remote.branch} is not there, and provisioning.mode is existing: make the branch, or write ensure`,
      )
    return fetched('HEAD')
  }

  /** What stands at these paths of a commit; those where nothing stands are left out. */
  async entries(
    commit: string,
    paths: readonly string[],
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, TreeEntry>> {
    const found = new Map<string, TreeEntry>()
    if (paths.length === 0) return found
    const input = paths.map((path) => `${commit}:${path}\n`)
    const output = await this.#must(['cat-file', '--batch-check=%(objectname) %(objecttype) %(objectsize)'], {
      input,
      signal,
    })
    const lines = output.toString().split('\n')
    for (const [i, path] of paths.entries()) {
      const [, id = '', type, size] = /^([0-9a-f]{40,64}) (blob|tree|commit) (\d+)$/.exec(lines[i] ?? '') ?? []
      if (type) found.set(path, { id, type: type as TreeEntry['type'], size: Number(size) })
    }
    return found
  }

  /** @throws SinkError terminal, where it has more than `maxBytes` */
  async read(commit: string, path: string, maxBytes: number, signal: AbortSignal): Promise<string | undefined> {
    const entry = (await this.entries(commit, [path], signal)).get(path)
    if (entry?.type !== 'blob') return undefined
    if (entry.size > maxBytes) throw tooLarge(path, maxBytes)
    return (await this.#must(['cat-file', 'blob', entry.id], { signal })).toString('utf8')
  }

  /** Paths of all files of a commit that end so. */
  async pathsEndingWith(commit: string, end: string, signal: AbortSignal): Promise<readonly string[]> {
    const output = await this.#must(['ls-tree', '-r', '-z', '--full-tree', '--name-only', commit], { signal })
    return output
      .toString('utf8')
      .split('\0')
      .filter((path) => path.endsWith(end))
  }

  /** Puts a commit on top of another one, or makes the first one. It is not pushed by that. */
  async commit(parent: string | undefined, change: CommitChange, signal: AbortSignal): Promise<void> {
    const input = importStream(parent, change)
    await this.#must(['fast-import', '--quiet', '--force', '--done', '--date-format=raw'], { input, signal })
  }

  /** Pushes the last commit. @param isForced what others pushed meanwhile is lost */
  async push(access: GitAccess, isForced: boolean, signal: AbortSignal): Promise<Push> {
    const ref = `${isForced ? '+' : ''}${NEXT}:refs/heads/${this.#remote.branch}`
    const end = await this.#withRemote(
      ['push', '--porcelain', '--no-verify', '--', this.#remote.url, ref],
      access,
      signal,
    )
    if (end.code === 0) return { kind: 'pushed' }
    const said = `${end.stdout.toString()}\n${end.stderr}`
    if (OVERTAKEN.test(said) && !cannotWrite(said)) return { kind: 'overtaken' }
    return { kind: 'refused', stderr: said }
  }

  /** Asks for what a push needs, without pushing. @throws SinkError where it would be refused */
  async tryPush(access: GitAccess, signal: AbortSignal): Promise<void> {
    const ref = `${NEXT}:refs/heads/${this.#remote.branch}`
    const end = await this.#withRemote(
      ['push', '--porcelain', '--dry-run', '--no-verify', '--', this.#remote.url, ref],
      access,
      signal,
    )
    if (end.code !== 0 && !OVERTAKEN.test(`${end.stdout.toString()}\n${end.stderr}`))
      throw gitFailure(end.stderr, this.#remote, this.#secrets)
  }

  /** Throws away what no longer belongs to the tip. */
  async tidy(signal: AbortSignal): Promise<void> {
    await this.#local(['gc', '--quiet', '--prune=now'], { signal })
  }

  /** Each way to the remote in turn, as long as nobody answers. */
  async #withRemote(args: readonly string[], { environments }: GitAccess, signal: AbortSignal): Promise<GitEnd> {
    let end: GitEnd = { code: -1, stdout: Buffer.alloc(0), stderr: 'fatal: there is no address' }
    for (const environment of environments) {
      end = await runGit([...this.#place, ...args], { environment, signal })
      if (end.code === 0 || !isUnreachable(end.stderr, this.#remote)) break
    }
    if (end.code !== 0 && BROKEN_CACHE.test(ownWords(end.stderr)))
      throw new GitCacheError(end.stderr.slice(-300).trim())
    return end
  }

  async #must(args: readonly string[], run: Omit<GitRun, 'environment'>): Promise<Buffer> {
    const { code, stdout, stderr } = await this.#local(args, run)
    if (code === 0) return stdout
    throw new GitCacheError(`git ${args[0]} failed on its cache: ${stderr.slice(-300).trim()}`)
  }

  #local(args: readonly string[], run: Omit<GitRun, 'environment'>): Promise<GitEnd> {
    return runGit([...this.#place, ...args], { ...run, environment: localEnvironment(this.#remote) })
  }

  get #place(): readonly string[] {
    return ['--git-dir', this.#directory]
  }

  /** Throws the cache away. */
  async discard(): Promise<void> {
    await rm(this.#directory, { recursive: true, force: true })
  }

  /** Folder beside it for files that live as long as an access. */
  get accessDirectory(): string {
    return `${this.#directory}${ACCESS_SUFFIX}`
  }
}

/** What was killed leaves locks behind; what a full disk cut short leaves halves. */
const BROKEN_CACHE =
  /Unable to create '.*\.lock'|bad object|loose object .* is corrupt|object file .* is empty|unable to read tree|missing (blob|tree|commit)|not a git repository: '|packfile .* (cannot|does not)/

/** Without what the server says of its own repository. */
const ownWords = (stderr: string): string => stderr.replace(/^remote: .*$/gm, '')

/** Somebody else's push came first: again, on top of it. */
const OVERTAKEN =
  /\[rejected\] \((fetch first|non-fast-forward|stale info)\)|\[remote rejected\] \((failed to update ref|cannot lock ref|incorrect old value|failed to lock|reference already exists)/

/** @see git-fast-import(1), "Input Format" */
function* importStream(parent: string | undefined, change: CommitChange): Generator<string | Buffer> {
  const { message, author, at, removed, files } = change
  const who = `${plain(author.name)} <${plain(author.email)}> ${at} +0000`
  yield `reset ${NEXT}\n${parent === undefined ? '' : `from ${parent}\n`}\n`
  yield `commit ${NEXT}\nauthor ${who}\ncommitter ${who}\n`
  yield* data(message)
  for (const path of removed) yield `D ${quotedPath(path)}\n`
  for (const { path, text } of files) {
    yield `M 100644 inline ${quotedPath(path)}\n`
    yield* data(text)
  }
  yield 'done\n'
}

function* data(text: string): Generator<string | Buffer> {
  const bytes = Buffer.from(text)
  yield `data ${bytes.length}\n`
  yield bytes
  yield '\n'
}

const plain = (text: string): string => text.replace(/[<>\r\n\0]/g, '')
const quotedPath = (path: string): string => `"${path.replace(/[\\"]/g, '\\$&')}"`
