import { mkdir, readdir, readFile, rename, rm, rmdir, stat, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import {
  type DocumentLayout,
  type DocumentTree,
  everyFile,
  HeldPositions,
  planDocuments,
  planMove,
  planRemoval,
  previewDocuments,
  type Standing,
  toldOf,
  tooLarge,
} from './documents/index.ts'
import type { Delivery, Position, Probe, Receipt, Sink, SinkPreview, Writing } from './sink.ts'

export interface DirectorySinkOptions {
  readonly directory: string
  readonly layout: DocumentLayout
  /** as that of a SinkContext */
  readonly writer: string
}

/** Documents in a folder of this machine. For the process's own use and for tests: no object of a tenant leads here. */
export class DirectorySink implements Sink {
  readonly family = 'snapshot'
  readonly #directory: string
  readonly #layout: DocumentLayout
  readonly #writer: string
  readonly #tree: DocumentTree
  readonly #held = new HeldPositions()

  constructor({ directory, layout, writer }: DirectorySinkOptions) {
    this.#directory = directory
    this.#layout = layout
    this.#writer = writer
    this.#tree = new DirectoryTree(directory)
  }

  async probe(): Promise<Probe> {
    const isThere = await isDirectory(this.#directory)
    const message = isThere ? 'the folder is there' : 'the folder is not there yet; the first snapshot makes it'
    return { verified: true, message, warnings: [] }
  }

  async deliver(delivery: Delivery, signal: AbortSignal): Promise<Receipt> {
    const options = { layout: this.#layout, writer: this.#writer, tree: this.#tree, held: this.#held }
    const plan = await planDocuments(delivery, options, signal)
    const takeMoved = async () => {
      const paths = await planMove(delivery, plan, options, signal)
      await this.#take(paths)
      return paths.length
    }
    if (plan.kind === 'none') return { ...plan.receipt, removed: await takeMoved() }
    let written = 0
    let bytes = 0
    for (const { path, text } of plan.ahead) await this.#write(path, text)
    for (const { path, text } of everyFile(plan)) {
      signal.throwIfAborted()
      if ((await this.#tree.read(path, Number.MAX_SAFE_INTEGER, signal)) === text) continue
      await this.#write(path, text)
      written++
      bytes += Buffer.byteLength(text)
    }
    await this.#take(plan.removed)
    this.#held.set(delivery.writing, plan.position, delivery.position)
    const removed = plan.removed.length + (await takeMoved())
    return { position: delivery.position, written, removed, bytes, ...toldOf(plan) }
  }

  async remove(writing: Writing, position: Position, signal: AbortSignal, formerList?: string): Promise<void> {
    const options = { layout: this.#layout, tree: this.#tree }
    await this.#take(await planRemoval(writing, position, options, signal, formerList))
  }

  preview(writing: Writing): SinkPreview {
    return previewDocuments(this.#layout, writing, 'ensure')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Nothing is open between two calls.
  }

  async #write(path: string, text: string): Promise<void> {
    const place = join(this.#directory, path)
    await mkdir(dirname(place), { recursive: true })
    await writeWhole(place, text)
  }

  async #take(paths: readonly string[]): Promise<void> {
    for (const path of paths) {
      await rm(join(this.#directory, path), { force: true })
      for (let folder = dirname(path); folder !== '.'; folder = dirname(folder))
        if (!(await removedEmpty(join(this.#directory, folder)))) break
    }
  }
}

class DirectoryTree implements DocumentTree {
  readonly #directory: string

  constructor(directory: string) {
    this.#directory = directory
  }

  async read(path: string, maxBytes: number): Promise<string | undefined> {
    const place = join(this.#directory, path)
    const { size = 0 } = (await stat(place).catch(absent)) ?? {}
    if (size > maxBytes) throw tooLarge(path, maxBytes)
    return readFile(place, 'utf8').catch(absent)
  }

  async existing(paths: readonly string[]): Promise<Standing> {
    const there = await Promise.all(paths.map((path) => stat(join(this.#directory, path)).catch(absent)))
    return new Map(paths.filter((_, i) => there[i] !== undefined).map((path) => [path, {}]))
  }

  async *manifests(maxBytes: number): AsyncIterable<readonly [string, string]> {
    const all = (await readdir(this.#directory, { recursive: true }).catch(absent)) ?? []
    for (const path of all) if (path.endsWith('.manifest.json')) yield [path, (await this.read(path, maxBytes)) ?? '']
  }
}

/** Writes a file as a whole: who reads it meanwhile sees the old one or the new one. */
export async function writeWhole(path: string, text: string): Promise<void> {
  const aside = join(dirname(path), `.${basename(path)}.${process.pid}`)
  try {
    await writeFile(aside, text)
    await rename(aside, path)
  } catch (error) {
    await rm(aside, { force: true })
    throw error
  }
}

function absent(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT' && error.code !== 'ENOTDIR') throw error
}

const isDirectory = async (path: string): Promise<boolean> => (await stat(path).catch(absent))?.isDirectory() ?? false

/** @returns whether it was empty, and is gone */
async function removedEmpty(folder: string): Promise<boolean> {
  try {
    await rmdir(folder)
    return true
  } catch {
    return false // something else is in it, or it is gone already
  }
}
