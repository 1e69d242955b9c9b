import { mkdir, open, readFile, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { type Clock, FleetError, seconds, systemClock } from '#model'
import { type Logger, silentLogger } from '#runtime'
import { type Entry, Journal, probed, RegistryBoard } from './board.ts'
import { factsOf, readFacts, readResult } from './stored.ts'
import type { ProbeResult, RegistryFacts, RegistryMeasurement, RegistryState, RegistryStore } from './types.ts'

export interface MemoryRegistriesOptions {
  /** where what is known outlives a restart, in one file; without it nothing does */
  readonly directory?: string
  /** the file is written no more often than this, ms; default 5 s */
  readonly writeEveryMs?: number
  readonly clock?: Clock
  readonly logger?: Logger
}

const FILE = 'registries.json'
const VERSION = 1

/** Registries of a hub that is one process. The file is written now and then, and when it is closed; it may be lost. */
export class MemoryRegistries implements RegistryStore {
  readonly #board = new RegistryBoard()
  readonly #options: Required<Omit<MemoryRegistriesOptions, 'directory'>> & { readonly directory: string | undefined }
  readonly #closing = new AbortController()
  #writing: Promise<void> | undefined
  #isWritten = true

  private constructor({
    directory,
    writeEveryMs = seconds(5),
    clock = systemClock,
    logger = silentLogger,
  }: MemoryRegistriesOptions) {
    this.#options = { directory, writeEveryMs, clock, logger }
  }

  /** With what was known before; where that cannot be read it begins anew, and says so in the log. */
  static async open(options: MemoryRegistriesOptions = {}): Promise<MemoryRegistries> {
    const registries = new MemoryRegistries(options)
    await registries.#load()
    return registries
  }

  registries(): readonly RegistryState[] {
    return this.#board.registries()
  }

  registry(name: string): RegistryState | undefined {
    return this.#board.get(name)?.state
  }

  measurements(name: string): readonly RegistryMeasurement[] {
    return this.#board.measurements(name, this.#options.clock.now())
  }

  version(): number {
    return this.#board.version
  }

  unavailable(): undefined {
    return undefined
  }

  onChange(listener: (name: string) => void): () => void {
    return this.#board.onChange(listener)
  }

  async declare(given: RegistryFacts): Promise<void> {
    const facts = factsOf(given)
    const entry = this.#board.declared(facts)
    if (!entry) return
    this.#board.put(facts.name, entry)
    this.#write()
  }

  async resync(all: readonly RegistryFacts[]): Promise<void> {
    const wanted = new Set(all.map(({ name }) => name))
    for (const { facts } of this.registries()) if (!wanted.has(facts.name)) await this.remove(facts.name)
    for (const facts of all) await this.declare(facts)
  }

  async record(name: string, result: ProbeResult): Promise<void> {
    const known = this.#board.get(name)
    if (!known) return
    known.journal.add(result.at, result.available, result.responseMs)
    this.#board.put(name, { ...known, state: probed(known.state, result) })
    this.#write()
  }

  async remove(name: string): Promise<void> {
    if (this.#board.remove(name)) this.#write()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort()
    await this.#writing
    if (!this.#isWritten) await this.#save()
  }

  async #load(): Promise<void> {
    const { directory, clock, logger } = this.#options
    if (directory === undefined) return
    const file = join(directory, FILE)
    try {
      const text = await readFile(file, 'utf8')
      for (const entry of readEntries(JSON.parse(text), clock.now())) this.#board.put(entry.state.facts.name, entry)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return
      const { message } = FleetError.from(error)
      logger.warn({ file, error: message }, 'what was known of registries cannot be read; it begins anew')
    }
  }

  #write(): void {
    this.#isWritten = false
    if (this.#options.directory === undefined || this.#closing.signal.aborted) return
    this.#writing ??= this.#later().finally(() => {
      this.#writing = undefined
      if (!this.#isWritten) this.#write()
    })
  }

  async #later(): Promise<void> {
    const { clock, writeEveryMs } = this.#options
    await clock.sleep(writeEveryMs, this.#closing.signal)
    await this.#save()
  }

  async #save(): Promise<void> {
    const { directory, clock, logger } = this.#options
    this.#isWritten = true
    if (directory === undefined) return
    const file = join(directory, FILE)
    try {
      await mkdir(directory, { recursive: true })
      const handle = await open(`${file}.new`, 'w', 0o600)
      try {
        await handle.writeFile(`${JSON.stringify(this.#document(clock.now()))}\n`)
        await handle.sync()
      } finally {
        await handle.close()
      }
      await rename(`${file}.new`, file)
    } catch (error) {
      // It is tried again with the next change; what is shown does not depend on it.
      logger.warn({ file, error: FleetError.from(error).message }, 'what is known of registries cannot be written')
    }
  }

  #document(now: number): object {
    const registries = this.#board.registries().map(({ facts, last, since }) => ({
      facts,
      last,
      since,
      measurements: this.#board
        .measurements(facts.name, now)
        .map(({ at, responseMs, available }) => [at, responseMs, available ? 1 : 0]),
    }))
    return { version: VERSION, registries }
  }
}

/** @throws TypeError where the document is not what we write */
function readEntries(document: unknown, now: number): Entry[] {
  const { version, registries } = document as { readonly version?: unknown; readonly registries?: unknown }
  if (version !== VERSION || !Array.isArray(registries)) throw new TypeError('it has another form')
  return registries.map((value) => readEntry(value, now))
}

function readEntry(value: unknown, now: number): Entry {
  const { facts, last, since, measurements } = value as Readonly<Record<string, unknown>>
  const readableFacts = readFacts(facts)
  const readableLast = last === null ? null : readResult(last)
  if (!readableFacts || readableLast === undefined || !Array.isArray(measurements))
    throw new TypeError('a registry in it has another form')
  const journal = new Journal()
  for (const item of measurements) {
    const [at, responseMs, available] = item as readonly unknown[]
    if (typeof at !== 'number' || !(responseMs === null || typeof responseMs === 'number'))
      throw new TypeError('a measurement in it has another form')
    // A clock that was wrong must not keep what comes from being taken.
    if (at <= now) journal.add(at, available === 1, responseMs)
  }
  return {
    state: { facts: readableFacts, last: readableLast, since: typeof since === 'number' ? since : null, version: 0 },
    journal,
  }
}
