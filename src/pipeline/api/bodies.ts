import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { constants, crc32, deflateRawSync, gzip as gzipCallback } from 'node:zlib'
import { LRUCache } from 'lru-cache'
import type { Steps } from '#runtime'

const gzip = promisify(gzipCallback)

/** An answer encoded once: equal tags mean equal bytes. `gzipped` packs on first use and keeps the result. */
export interface Body {
  readonly plain: Buffer
  /** without quotes */
  readonly etag: string
  gzipped(): Promise<Buffer>
}

export const textBody = (text: string): Body => bufferBody(Buffer.from(text))

/** What lies between two steps is written at once, letters. */
const PIECE = 2 ** 16

/** Of a long text, step by step. */
export function* bodySteps(texts: Iterable<string>): Steps<Body> {
  const pieces: Buffer[] = []
  const hash = createHash('sha1')
  let text = ''
  const put = () => {
    const piece = Buffer.from(text)
    hash.update(piece)
    pieces.push(piece)
    text = ''
  }
  for (const one of texts) {
    text += one
    if (text.length >= PIECE) put()
    yield
  }
  put()
  return bodyOf(Buffer.concat(pieces), hash.digest('base64url'))
}

export const bufferBody = (plain: Buffer): Body => bodyOf(plain, createHash('sha1').update(plain).digest('base64url'))

function bodyOf(plain: Buffer, etag: string): Body {
  let packed: Promise<Buffer> | undefined
  return {
    plain,
    etag,
    gzipped: () => {
      packed ??= gzip(plain, { level: 5 })
      return packed
    },
  }
}

const membersPerChunk = 16

interface Chunk {
  readonly members: readonly string[]
  readonly plain: Buffer
  readonly hash: Buffer
  deflated: Buffer | undefined
}

/** A list body that remembers its chunks, so that the next one encodes only what changed. */
export interface ListBody extends Body {
  readonly chunks: readonly Chunk[]
}

/**
 * `prefix`, the members with commas between, `suffix`. Chunks of members that are the same as in `previous` are taken from
 * there, bytes, hash and packed form alike: one changed cluster of a thousand costs one chunk.
 */
export function listBody(prefix: string, members: readonly string[], suffix: string, previous?: ListBody): ListBody {
  const chunks: Chunk[] = []
  for (let start = 0; start < members.length; start += membersPerChunk) {
    const slice = members.slice(start, start + membersPerChunk)
    const known = previous?.chunks[chunks.length]
    chunks.push(known && sameMembers(known.members, slice) ? known : chunkOf(slice, start === 0))
  }
  const head = Buffer.from(prefix)
  const tail = Buffer.from(suffix)
  const plain = Buffer.concat([head, ...chunks.map((chunk) => chunk.plain), tail])
  const hash = createHash('sha1').update(head).update(tail)
  for (const chunk of chunks) hash.update(chunk.hash)
  let packed: Buffer | undefined
  return {
    plain,
    chunks,
    etag: hash.digest('base64url'),
    gzipped: async () => {
      packed ??= gzipOf(plain, [deflate(head), ...chunks.map(deflatedChunk), deflate(tail)])
      return packed
    },
  }
}

function chunkOf(members: readonly string[], first: boolean): Chunk {
  const plain = Buffer.from(`${first ? '' : ','}${members.join(',')}`)
  return { members, plain, hash: createHash('sha1').update(plain).digest(), deflated: undefined }
}

function deflatedChunk(chunk: Chunk): Buffer {
  chunk.deflated ??= deflate(chunk.plain)
  return chunk.deflated
}

// Ends on a byte boundary and is not the last block (RFC 1951, 3.2.4), so that pieces made apart can stand in a row.
const deflate = (piece: Buffer): Buffer => deflateRawSync(piece, { level: 5, finishFlush: constants.Z_SYNC_FLUSH })

// RFC 1952: magic, deflate, no flags, no time, no extra flags, unknown system.
const gzipHeader = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255])
const lastEmptyBlock = Buffer.from([3, 0])

/** One gzip member out of deflated pieces; browsers read only the first member of a file, so several will not do. */
function gzipOf(plain: Buffer, pieces: readonly Buffer[]): Buffer {
  const trailer = Buffer.alloc(8)
  trailer.writeUInt32LE(crc32(plain), 0)
  trailer.writeUInt32LE(plain.length % 2 ** 32, 4)
  return Buffer.concat([gzipHeader, ...pieces, lastEmptyBlock, trailer])
}

const sameMembers = (left: readonly string[], right: readonly string[]): boolean =>
  left.length === right.length && left.every((member, index) => member === right[index])

interface Entry {
  readonly tag: unknown
  readonly validUntil: number
  readonly body: Body
}

/** What the answer was made of (a state version or a cluster's state), and until when time alone leaves it true. */
export interface Origin {
  readonly tag: unknown
  /** ms since the Unix epoch; Infinity where the answer does not depend on time */
  readonly validUntil: number
}

export interface BodyCacheCounts {
  hits: number
  misses: number
}

/** Encoded bodies by question, bounded in bytes, least recently used first out. A changed origin replaces the entry. */
export class BodyCache {
  readonly counts: BodyCacheCounts = { hits: 0, misses: 0 }
  readonly #entries: LRUCache<string, Entry>

  constructor(maxBytes: number) {
    this.#entries = new LRUCache({
      maxSize: maxBytes,
      // The packed form and the chunks of a list may double it; the key counts too.
      sizeCalculation: ({ body }, key) => body.plain.length * 2 + key.length + 500,
    })
  }

  get(key: string, tag: unknown, now: number): Body | undefined {
    const entry = this.#entries.get(key)
    if (entry && entry.tag === tag && now < entry.validUntil) {
      this.counts.hits += 1
      return entry.body
    }
    this.counts.misses += 1
    return undefined
  }

  /** The body that stood under this key last, however old: its chunks may serve again. */
  previous(key: string): Body | undefined {
    return this.#entries.peek(key)?.body
  }

  set(key: string, { tag, validUntil }: Origin, body: Body): void {
    this.#entries.set(key, { tag, validUntil, body })
  }
}
