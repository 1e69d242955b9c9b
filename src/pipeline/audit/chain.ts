import { createHash, createHmac } from 'node:crypto'
import type { AuditEntry } from './types.ts'

/** One line of the file: its place, what came before, the entry, and the hash over the three. */
export interface ChainLine {
  readonly seq: number
  /** `hash` of the line before; 64 zeros for the first of all */
  readonly prev: string
  readonly entry: AuditEntry | ChainNote
  readonly hash: string
}

/**
 * What the trail says of itself: entries that found no room (`dropped`), entries of strangers and of members beyond what is recorded of
 * them one by one (`strangers`, `members`), a torn line that was cut off (`recovered`); lines that somebody took away, found at a start or
 * before a write (`cut`); and a head that was missing or not signed at a start (`unsigned`).
 */
export interface ChainNote {
  readonly at: number
  readonly kind: 'dropped' | 'strangers' | 'members' | 'recovered' | 'cut' | 'unsigned'
  readonly count: number
}

export interface ChainHead {
  readonly seq: number
  readonly hash: string
}

export const START: ChainHead = { seq: 0, hash: '0'.repeat(64) }

/** @param key with it nobody without the key can write a chain that verifies */
export function link(head: ChainHead, entry: AuditEntry | ChainNote, key?: Buffer): ChainLine {
  const seq = head.seq + 1
  return { seq, prev: head.hash, entry, hash: hashOf(seq, head.hash, JSON.stringify(entry), key) }
}

export const lineText = ({ seq, prev, entry, hash }: ChainLine): string =>
  `{"seq":${seq},"prev":"${prev}","hash":"${hash}","entry":${JSON.stringify(entry)}}\n`

function hashOf(seq: number, prev: string, entry: string, key: Buffer | undefined): string {
  const hash = key ? createHmac('sha256', key) : createHash('sha256')
  return hash.update(`${seq}\n${prev}\n${entry}`).digest('hex')
}

const shape = /^\{"seq":(\d{1,15}),"prev":"([0-9a-f]{64})","hash":"([0-9a-f]{64})","entry":(\{.*\})\}$/

/**
 * Whether this text is the line that follows `head`; the very bytes of the entry are hashed, so that no second way of writing
 * it verifies as well.
 * @returns the new head, or what is wrong
 */
export function follow(head: ChainHead | undefined, text: string, key?: Buffer): ChainHead | { readonly why: string } {
  const match = shape.exec(text)
  if (!match) return { why: 'this is no line of an audit file' }
  const [, seqText, prev = '', hash = '', entry = ''] = match
  const seq = Number(seqText)
  if (hashOf(seq, prev, entry, key) !== hash)
    return { why: 'the entry was changed after it was written, or the key is another' }
  if (head && (seq !== head.seq + 1 || prev !== head.hash))
    return {
      why:
        seq === head.seq + 1
          ? 'the line before it is not the one that was there'
          : `line ${seq} follows line ${head.seq}`,
    }
  return { seq, hash }
}

/** @returns what the line says is missing before it; undefined for every other line */
export function isLoss(text: string): string | undefined {
  const match = /"entry":\{"at":\d+,"kind":"(cut|unsigned)","count":(\d+)\}\}$/.exec(text)
  if (!match) return undefined
  const found =
    match[1] === 'cut'
      ? `${match[2]} lines before this one were missing when the hub wrote it`
      : 'the head beside the file was missing or not signed when the hub started, so lines before this one may be missing'
  return `${found}: compare with a line noted elsewhere, then put the files up to here away (the one being written only while the hub is stopped, and with its head)`
}
