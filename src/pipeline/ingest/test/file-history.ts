import { type FileHandle, open } from 'node:fs/promises'
import type { HistoryRecord, HistoryStore } from '#history'
import { type Loss, StoreUnavailableError } from '#model'

interface Line {
  readonly position: number
  readonly samples: { readonly cluster: string; readonly at: number; readonly keys: number }[]
  readonly lost: { readonly cluster: string; readonly loss: Loss }[]
}

/** The smallest history that survives a kill: one synced line per append, with its position. Only what tests ask of it. */
export class FileHistory implements HistoryStore {
  readonly driver = 'duckdb'
  /** what a test may let it answer */
  trouble: ((records: readonly HistoryRecord[]) => Error | undefined) | undefined
  readonly #file: FileHandle
  readonly #lines: Line[]
  #bytes: number

  private constructor(file: FileHandle, lines: Line[], bytes: number) {
    this.#file = file
    this.#lines = lines
    this.#bytes = bytes
  }

  static async open(path: string): Promise<FileHistory> {
    const file = await open(path, 'a+').then(async (made) => {
      await made.close()
      return open(path, 'r+')
    })
    const text = (await file.readFile()).toString()
    const whole = text.slice(0, text.lastIndexOf('\n') + 1)
    const lines = whole.split('\n').filter(Boolean)
    return new FileHistory(
      file,
      lines.map((line) => JSON.parse(line) as Line),
      Buffer.byteLength(whole),
    )
  }

  async append(records: readonly HistoryRecord[], position: number): Promise<void> {
    const trouble = this.trouble?.(records)
    if (trouble) throw trouble
    if (position <= this.position()) return
    const line: Line = {
      position,
      samples: records.flatMap((record) => {
        if (record.kind !== 'samples') return []
        const { cluster, at, groups } = record.samples
        return [{ cluster, at, keys: groups.reduce((sum, { keys }) => sum + keys.length, 0) }]
      }),
      lost: records.flatMap((record) => (record.kind === 'lost' ? [record] : [])),
    }
    const bytes = Buffer.from(`${JSON.stringify(line)}\n`)
    await this.#file.write(bytes, 0, bytes.length, this.#bytes)
    await this.#file.datasync()
    this.#bytes += bytes.length
    this.#lines.push(line)
  }

  position(): number {
    return this.#lines.at(-1)?.position ?? -1
  }

  /** It came back empty: what it had is gone, and so says its position. */
  forget(): void {
    this.#lines.length = 0
  }

  /** times of the samples of a cluster, in the order they came */
  timesOf(cluster: string): number[] {
    return this.#lines.flatMap(({ samples }) => samples.filter((one) => one.cluster === cluster).map(({ at }) => at))
  }

  lossesOf(cluster: string): Loss[] {
    return this.#lines.flatMap(({ lost }) => lost.filter((one) => one.cluster === cluster).map(({ loss }) => loss))
  }

  availability() {
    return { state: 'available' } as const
  }

  range(): Promise<never> {
    return Promise.reject(new StoreUnavailableError('history', 'it only writes'))
  }

  spans(): Promise<never> {
    return this.range()
  }

  keys(): Promise<never> {
    return this.range()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#file.close()
  }
}
