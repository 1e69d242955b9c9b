import { createHash } from 'node:crypto'
import { type FileHandle, mkdir, open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { type Ranges, rangesOf, type SequenceRange, withRange } from '#model'
import { isDiskFull } from '#runtime'

const SLOT_BYTES = 128 * 1024
const HEAD_BYTES = 64
const MAX_RUNS = Math.floor((SLOT_BYTES - HEAD_BYTES) / 16)
const MAGIC = 0x4c504331

/**
 * Which sequences were given out, and which of them are settled (acknowledged, or declared lost and that acknowledged).
 * Two slots of a file whose bytes exist from the start, written in turn: it can be kept on a full disk, and a write that was
 * cut off leaves the other slot. What was given out and is neither settled nor in the buffer is lost, and is found so.
 */
export class Ledger implements AsyncDisposable {
  settled: Ranges
  readonly #file: FileHandle
  /** batches declared lost since the buffer was made */
  lostBatches: number
  #used: number
  #generation: number
  #writing: Promise<void> = Promise.resolve()

  private constructor(file: FileHandle, kept: Kept | undefined) {
    this.#file = file
    this.#generation = kept?.generation ?? 0
    this.#used = kept?.used ?? 0
    this.lostBatches = kept?.lostBatches ?? 0
    this.settled = rangesOf(kept?.settled ?? [])
  }

  /** The system's error where the file can be neither read nor made. */
  static async open(path: string): Promise<Ledger> {
    await mkdir(dirname(path), { recursive: true })
    const file = await open(path, 'r+').catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error
      return open(path, 'w+')
    })
    try {
      const { size } = await file.stat()
      if (size < 2 * SLOT_BYTES) {
        await reserve(file, size)
      }
      const bytes = Buffer.alloc(2 * SLOT_BYTES)
      await file.read(bytes, 0, bytes.length, 0)
      const slots = [decode(bytes.subarray(0, SLOT_BYTES)), decode(bytes.subarray(SLOT_BYTES))]
      const newest = slots.filter((slot) => slot !== undefined).sort((a, b) => b.generation - a.generation)[0]
      return new Ledger(file, newest)
    } catch (error) {
      await file.close()
      throw error
    }
  }

  /** the highest sequence that was given out; 0 before the first */
  get used(): number {
    return this.#used
  }

  use(sequence: number): void {
    this.#used = Math.max(this.#used, sequence)
  }

  settle(range: SequenceRange): void {
    this.settled = withRange(this.settled, range)
  }

  /** whether `save` can keep all runs; where not, nothing that relies on them may be deleted */
  get fits(): boolean {
    return this.settled.length <= MAX_RUNS
  }

  /** Resolves when all of it, as it is now, survives a loss of power; rejects with the system's error. */
  save(): Promise<void> {
    const next = this.#writing.then(() => this.#write())
    this.#writing = next.catch(() => undefined) // the caller hears of it; the next save starts anew
    return next
  }

  async #write(): Promise<void> {
    const generation = this.#generation + 1
    const bytes = encode({
      generation,
      used: this.#used,
      lostBatches: this.lostBatches,
      settled: this.settled.slice(0, MAX_RUNS),
    })
    await this.#file.write(bytes, 0, bytes.length, (generation % 2) * SLOT_BYTES)
    await this.#file.datasync()
    this.#generation = generation
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#writing
    await this.#file.close()
  }
}

/** On a disk that is full already there is nothing to reserve: each save tries anew. */
async function reserve(file: FileHandle, sizeBytes: number): Promise<void> {
  try {
    await file.write(Buffer.alloc(2 * SLOT_BYTES - sizeBytes), 0, 2 * SLOT_BYTES - sizeBytes, sizeBytes)
    await file.sync()
  } catch (error) {
    if (!isDiskFull(error)) throw error
  }
}

interface Kept {
  readonly generation: number
  readonly used: number
  readonly lostBatches: number
  readonly settled: readonly SequenceRange[]
}

// magic u32 │ runs u32 │ generation f64 │ used f64 │ lost f64 │ SHA-256 of the rest │ first f64, last f64 …
function encode({ generation, used, lostBatches, settled }: Kept): Buffer {
  const bytes = Buffer.alloc(HEAD_BYTES + settled.length * 16)
  bytes.writeUInt32LE(MAGIC, 0)
  bytes.writeUInt32LE(settled.length, 4)
  bytes.writeDoubleLE(generation, 8)
  bytes.writeDoubleLE(used, 16)
  bytes.writeDoubleLE(lostBatches, 24)
  for (const [i, [first, last]] of settled.entries()) {
    bytes.writeDoubleLE(first, HEAD_BYTES + i * 16)
    bytes.writeDoubleLE(last, HEAD_BYTES + i * 16 + 8)
  }
  digest(bytes).copy(bytes, 32)
  return bytes
}

function decode(slot: Buffer): Kept | undefined {
  const count = slot.readUInt32LE(4)
  if (slot.readUInt32LE(0) !== MAGIC || count > MAX_RUNS) return undefined
  const bytes = slot.subarray(0, HEAD_BYTES + count * 16)
  if (!digest(bytes).equals(bytes.subarray(32, HEAD_BYTES))) return undefined
  const settled = Array.from(
    { length: count },
    (_, i): SequenceRange => [bytes.readDoubleLE(HEAD_BYTES + i * 16), bytes.readDoubleLE(HEAD_BYTES + i * 16 + 8)],
  )
  return {
    generation: bytes.readDoubleLE(8),
    used: bytes.readDoubleLE(16),
    lostBatches: bytes.readDoubleLE(24),
    settled,
  }
}

function digest(bytes: Buffer): Buffer {
  return createHash('sha256').update(bytes.subarray(0, 32)).update(bytes.subarray(HEAD_BYTES)).digest()
}
