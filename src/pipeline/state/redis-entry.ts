import { createHash } from 'node:crypto'
import type { ClusterName, OwnerPlace } from '#model'
import type { Command } from '#redis'
import { type ClusterStep, parseStep, type StepText } from './cluster-step.ts'
import { hashOf } from './redis-alerts.ts'
import { own } from './redis-keys.ts'

/*
 * An entry of the stream: a cluster moved. What it tells besides is the step itself; versions from before that know nothing of it
 * and read the cluster again, as everybody does where an entry of theirs has none.
 *
 *   op put|remove|reload  c cluster  v version  o owner  g generation  s writer  n count
 *   b base  x digest  d step  <field of rows> <text> …
 */

/** What one owner told in the stream. */
export interface Entry {
  readonly id: string
  readonly op: string
  readonly cluster: string
  readonly version: number
  /** index of who wrote it; 0: it is about all of them */
  readonly owner: number
  /** of its share */
  readonly generation: string
  readonly writer: string
  /** of the writer's entries */
  readonly count: number
  /** undefined: there is none, or it was altered */
  readonly step: ClusterStep | undefined
  /** the cluster was written again as it was */
  readonly isAgain: boolean
}

/** What an owner says of a cluster; of all of its share where `cluster` is ''. */
export interface Told {
  readonly op: 'put' | 'remove' | 'reload'
  readonly cluster: ClusterName | ''
  readonly version: number
  /** absent: it is to be read */
  readonly step?: StepText | undefined
  /** it was written again as it was */
  readonly isAgain?: boolean
}

/** Who says it. */
interface Teller {
  readonly owner: OwnerPlace
  readonly generation: string
  readonly writer: string
  readonly count: number
  /** entries that are kept */
  readonly length: number
}

/** Adds an entry, and says who wrote last. */
export function entryCommands(
  { op, cluster, version, step, isAgain }: Told,
  { owner: { index }, generation, writer, count, length }: Teller,
): [entry: Command, count: Command] {
  // biome-ignore format: pairs of field and value
  const entry: Command = [
    'XADD', own.changes, 'MAXLEN', '~', length, '*',
    'op', op, 'c', cluster, 'v', version, 'o', index, 'g', generation,
    ...(isAgain ? ['b', version] : []),
    ...(step ? ['x', digestOf(step), 'd', step.text, ...step.fields.flat()] : []),
    's', writer, 'n', count,
  ]
  return [entry, ['HSET', own.writers, index, `${writer} ${count}`]]
}

/** Bytes of an entry, about. */
export const bytesOfEntry = ([, , ...args]: Command): number =>
  args.reduce<number>((sum, one) => sum + (typeof one === 'string' ? one.length : 8), 0)

/** Entries of a stream's raw reply; what is not one of ours is left out. */
export function entriesOf(reply: unknown): Entry[] {
  if (!Array.isArray(reply)) return []
  return (reply as [string, string[]][]).flatMap(([id, pairs]) => {
    const fields = hashOf(pairs)
    const { op, c: cluster = '', v, o = '1', g: generation = '', s: writer = '', n, b } = fields
    if (op === undefined) return []
    const version = Number(v)
    const step = stepOf(fields)
    const isAgain = b !== undefined && Number(b) === version
    return [{ id, op, cluster, version, owner: Number(o), generation, writer, count: Number(n), step, isAgain }]
  })
}

/** The same entry has it in every process. Its id alone comes again where Redis lost its memory and the clock was set back. */
export const nameOf = ({ id, writer, count }: Pick<Entry, 'id' | 'writer' | 'count'>): string =>
  `${id}.${writer}.${count}`

/** ms since the Unix epoch, by the clock of Redis */
export const timeOf = ({ id }: Pick<Entry, 'id'>): number => Number(id.split('-')[0])

function stepOf({ d: text, x: digest, ...others }: Record<string, string>): ClusterStep | undefined {
  if (text === undefined) return undefined
  // Those of ours have no colon.
  const fields = Object.entries(others).filter(([field]) => field.includes(':'))
  return digestOf({ text, fields }) === digest ? parseStep({ text, fields }) : undefined
}

function digestOf({ text, fields }: StepText): string {
  const hash = createHash('sha1').update(text)
  for (const [field, value] of fields) hash.update(`\n${field}\n`).update(value)
  return hash.digest('base64url').slice(0, 12)
}
