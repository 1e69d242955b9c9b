import { randomBytes } from 'node:crypto'
import { type OwnerPlace, ownerName, StoreUnavailableError } from '#model'
import { type Command, pipelined, type Redis, redisUnavailable } from '#redis'
import { hashOf } from './redis-alerts.ts'
import { own } from './redis-keys.ts'

/** Which owners share a Redis, and whose share is there. */
export interface Division {
  /** undefined: nobody has written yet, or Redis lost its memory */
  readonly count: number | undefined
  /** by the index of an owner: the mark of its share, while that is whole */
  readonly generations: ReadonlyMap<number, string>
  /** by the index of an owner: the mark of a share that is being written anew */
  readonly writing: ReadonlyMap<number, string>
  /** by the index of an owner: the clusters of its share, as `namesText` */
  readonly names: ReadonlyMap<number, string>
  /** by the index of an owner: the process that writes its share, as its entries in the stream name it; none: of a former version */
  readonly writers: ReadonlyMap<number, string>
  /** a sole owner's mark is not in both of its places: a former version wrote */
  readonly isOneSided: boolean
}

const COUNT = 'count'
const WRITING = 'writing:'
const NAMES = 'names:'
const WRITER = 'writer:'
const writingField = (index: number): string => `${WRITING}${index}`

/** A mark that nobody had before. */
export const newGeneration = (): string => randomBytes(8).toString('hex')

/** To be read together, for `divisionOf`. */
export const divisionCommands: readonly Command[] = [
  ['HGETALL', own.owners],
  ['GET', own.generation],
]

/**
 * @param hash `clusterpulse:owners` as the server replied
 * @param text `clusterpulse:generation`, which is there with a sole owner only. Where both contradict each other, a version
 * that does not know the hash was the last to write
 */
export function divisionOf(hash: unknown, text: unknown): Division {
  const fields = hashOf(hash)
  const generations = new Map<number, string>()
  const writing = new Map<number, string>()
  const names = new Map<number, string>()
  const writers = new Map<number, string>()
  const count = readIndex(fields[COUNT])
  for (const [field, mark] of Object.entries(fields)) {
    const index = readIndex(field)
    if (index !== undefined && index <= (count ?? 0)) generations.set(index, mark)
    const begun = indexAfter(WRITING, field)
    if (begun !== undefined) writing.set(begun, mark)
    const named = indexAfter(NAMES, field)
    if (named !== undefined && named <= (count ?? 0)) names.set(named, mark)
    const written = indexAfter(WRITER, field)
    if (written !== undefined) writers.set(written, mark)
  }
  if (typeof text !== 'string')
    return { count, generations, writing, names, writers, isOneSided: count === 1 && generations.size > 0 }
  const isOneSided = count !== 1 || generations.get(1) !== text
  const former = { writing: new Map(), names: new Map() } // a version that knows of neither
  const known = isOneSided ? former : { writing, names }
  return { count: 1, generations: new Map([[1, text]]), ...known, writers, isOneSided }
}

function readIndex(text: string | undefined): number | undefined {
  return text !== undefined && /^[1-9]\d{0,5}$/.test(text) ? Number(text) : undefined
}

const indexAfter = (prefix: string, field: string): number | undefined =>
  field.startsWith(prefix) ? readIndex(field.slice(prefix.length)) : undefined

/** Everything that any owner wrote is there. */
export const isWhole = ({ count, generations }: Division): boolean => count !== undefined && generations.size === count

/** Owners whose share is not there; none where nothing is known of any. */
export function missingOwners({ count = 0, generations }: Division): string[] {
  const all = Array.from({ length: count }, (_, i) => i + 1)
  return all.filter((index) => !generations.has(index)).map((index) => ownerName({ index, of: count }) ?? 'the manager')
}

export function isSameDivision(one: Division, other: Division): boolean {
  if (one.count !== other.count || one.generations.size !== other.generations.size) return false
  return [...one.generations].every(([index, mark]) => other.generations.get(index) === mark)
}

/** Makes this the whole truth about who has which share. */
export function divisionWrites(of: number, generations: ReadonlyMap<number, string>): Command[] {
  const only = of === 1 ? generations.get(1) : undefined
  return [
    ['DEL', own.owners],
    ['HSET', own.owners, COUNT, of, ...[...generations].flat()],
    only === undefined ? ['DEL', own.generation] : ['SET', own.generation, only],
  ]
}

/** A share is being written anew: it is not there until `shareWrites`. */
export function shareBegins({ index, of }: OwnerPlace, mark: string): Command[] {
  return [
    ['HSET', own.owners, COUNT, of, writingField(index), mark],
    ['HDEL', own.owners, index],
    ...(of === 1 ? [['DEL', own.generation] satisfies Command] : []),
  ]
}

/** A share is whole. */
export function shareWrites({ index, of }: OwnerPlace, generation: string): Command[] {
  return [
    ['HSET', own.owners, COUNT, of, index, generation],
    ['HDEL', own.owners, writingField(index)],
    ...(of === 1 ? [['SET', own.generation, generation] satisfies Command] : []),
  ]
}

/** From now on this process writes the share, and no other does. */
export const writerWrites = ({ index }: OwnerPlace, writer: string): Command => [
  'HSET',
  own.owners,
  `${WRITER}${index}`,
  writer,
]

/** @throws StoreUnavailableError where another process took over: what this one has still to say is old */
export function refuseFormer({ writers }: Division, { index }: OwnerPlace, writer: string): void {
  const now = writers.get(index)
  if (now === undefined || now === writer) return
  throw new StoreUnavailableError(
    'Redis',
    'another process took over what this one wrote: it leads now, or was started beside this one. This one writes nothing any more',
  )
}

/** @throws StoreUnavailableError where owners of another division hold this Redis: one of ours must not write into it */
export function refuseOthers({ count }: Division, { of }: OwnerPlace): void {
  if (count === undefined || count === of) return
  throw new StoreUnavailableError(
    'Redis',
    `another division of owners holds this Redis: it is written by ${owners(count)}, this process is one of ${of}. ` +
      'A manager divides it anew when it starts: let one manager run on this Redis, or give each a Redis of its own',
  )
}

const owners = (count: number) => (count === 1 ? 'one owner' : `${count} owners`)

const TRIES = 8

/**
 * Runs commands in a transaction that is only taken while Redis is divided as they assume. One at a time on a connection.
 * @param commandsFor decides by how it is divided now; undefined, or none: nothing is written. It may throw. It is asked
 * again when that changed meanwhile
 * @returns what the commands returned; undefined where `commandsFor` did
 * @throws StoreUnavailableError
 */
export async function whileDivided(
  redis: Redis,
  commandsFor: (division: Division) => readonly Command[] | undefined,
): Promise<unknown[] | undefined> {
  for (let attempt = 0; attempt < TRIES; attempt++) {
    const [, , hash, text] = await pipelined(redis, [
      ['UNWATCH'],
      ['WATCH', own.owners, own.generation],
      ...divisionCommands,
    ])
    const commands = commandsFor(divisionOf(hash, text))
    if (!commands || commands.length === 0) {
      await pipelined(redis, [['UNWATCH']])
      return commands && []
    }
    const results = await watchedTransaction(redis, commands)
    if (results) return results
  }
  throw new StoreUnavailableError('Redis', 'the owners of its data change again and again')
}

/** @returns undefined where what is watched changed: nothing was taken */
async function watchedTransaction(redis: Redis, commands: readonly Command[]): Promise<unknown[] | undefined> {
  try {
    const results = await redis.multi(commands.map(([name, ...args]) => [name.toLowerCase(), ...args])).exec()
    return results?.map(([error, value]) => {
      if (error) throw error
      return value
    })
  } catch (error) {
    throw redisUnavailable(error)
  }
}
