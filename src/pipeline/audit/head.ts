import { createHmac } from 'node:crypto'
import { rename, writeFile } from 'node:fs/promises'
import type { ChainHead } from './chain.ts'
import { headIn, readText } from './lines.ts'

/** Beside the file, `<path>.head`: the last line written and the first of the file, signed where there is a key. */
export interface KeptHead extends ChainHead {
  /** sequence of the first line of the file being written */
  readonly first: number
  /** whether the key signed exactly this */
  readonly signed: boolean
}

/** @throws where it cannot be written; the one before still stands then */
export async function keepHead(path: string, head: ChainHead, first: number, key?: Buffer): Promise<void> {
  const mac = key && macOf(head, first, key)
  const text = `${JSON.stringify({ seq: head.seq, hash: head.hash, first, ...(mac && { mac }) })}\n`
  await writeFile(`${path}.head.new`, text, { mode: 0o600 })
  await rename(`${path}.head.new`, `${path}.head`)
}

/** @returns undefined where there is none, or it is none of ours */
export async function readHead(path: string, key?: Buffer): Promise<KeptHead | undefined> {
  const text = await readText(`${path}.head`)
  const head = headIn(text)
  if (!head) return undefined
  const { first, mac } = JSON.parse(text) as { first?: unknown; mac?: unknown }
  const known = typeof first === 'number' ? first : 1
  return { ...head, first: known, signed: key !== undefined && mac === macOf(head, known, key) }
}

const macOf = ({ seq, hash }: ChainHead, first: number, key: Buffer): string =>
  createHmac('sha256', key).update(`head\n${seq}\n${hash}\n${first}`).digest('hex')
