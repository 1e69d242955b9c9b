import { type ClusterName, type ClusterState, isClusterName, type OwnerPlace, owns } from '#model'
import { type Command, pipelined, type Redis, transaction } from '#redis'
import { type Logger, silentLogger } from '#runtime'
import { hashOf } from './redis-alerts.ts'
import { own } from './redis-keys.ts'
import { areAsWritten } from './redis-names.ts'
import { type Division, divisionCommands, divisionOf, isWhole, missingOwners } from './redis-owners.ts'
import { damageLogger, decodeCluster } from './stored.ts'
import type { StoredRows } from './stored-rows.ts'

/** Clusters read at once. */
const CHUNK = 32

export interface LoadedFleet {
  readonly clusters: ReadonlyMap<ClusterName, ClusterState>
  /** listed, and not to be read: lost, or damaged */
  readonly unreadable: readonly ClusterName[]
  /** those listed are the clusters that the owners wrote */
  readonly isComplete: boolean
  readonly division: Division
  readonly version: number | undefined
  readonly position: number
}

export interface LoadOptions {
  readonly logId?: string
  readonly owner?: OwnerPlace
  /** is told of rows that cannot be read */
  readonly logger?: Logger
}

/**
 * Everything our own keys hold.
 * @param owner only its clusters, whether or not its share is whole; without one all of them, or none while a share is missing
 * @throws StoreUnavailableError
 */
export async function loadFleet(
  redis: Redis,
  rows: StoredRows,
  { logId = '', owner, logger = silentLogger }: LoadOptions = {},
): Promise<LoadedFleet> {
  // At one moment: a cluster comes and goes together with the word of its owner.
  const [hash, text, version, position, names] = (await transaction(redis, [
    ...divisionCommands,
    ['GET', own.version],
    ['HGET', own.positions, logId],
    ['SMEMBERS', own.clusters],
  ])) as [unknown, unknown, string | null, string | null, string[]]
  const division = divisionOf(hash, text)
  const isWanted = owner
    ? (name: ClusterName) => (division.count ?? owner.of) === owner.of && owns(owner, name)
    : () => isWhole(division)
  const clusters = new Map<ClusterName, ClusterState>()
  const unreadable: ClusterName[] = []
  const listed = names.filter(isClusterName)
  const known = listed.filter(isWanted)
  for (let from = 0; from < known.length; from += CHUNK) {
    const chunk = known.slice(from, from + CHUNK)
    const hashes = await pipelined(
      redis,
      chunk.map((name): Command => ['HGETALL', own.cluster(name)]),
    )
    for (const [i, name] of chunk.entries()) {
      const state = decodeCluster(hashOf(hashes[i]), rows, { onDamage: damageLogger(name, logger) })
      if (state) clusters.set(name, state)
      else unreadable.push(name)
    }
  }
  return {
    clusters,
    unreadable,
    isComplete: areAsWritten(division, listed),
    division,
    version:
      version === null ? undefined : [...clusters.values()].reduce((v, c) => Math.max(v, c.version), Number(version)),
    position: position === null ? -1 : Number(position),
  }
}

/** What is wrong with a fleet of which every share is there; undefined: it is exactly what the owners wrote. For anybody. */
export function faultOf({ isComplete, unreadable }: LoadedFleet): string | undefined {
  if (isComplete && unreadable.length === 0) return undefined
  const what = isComplete
    ? `keys ${own.cluster('<name>' as ClusterName)} are missing or damaged`
    : `${own.clusters} does not list the clusters that ${own.owners} counts`
  return `Redis does not hold all clusters that the manager wrote: ${what}; a running manager writes them again within seconds`
}

/**
 * Why nothing can be read although Redis answers: which keys are missing, and what to do. For anybody: it names no host.
 * @throws StoreUnavailableError
 */
export async function whatIsMissing(redis: Redis, division: Division): Promise<string> {
  const shares = missingOwners(division)
  if (shares.length > 0)
    return `Redis lacks the state of ${shares.join(', ')} (in ${own.owners}): it is there as soon as the manager has written it`
  const [documented, names] = await pipelined(redis, [
    ['EXISTS', 'clusters:all'],
    ['EXISTS', own.clusters],
  ])
  const keys = names === 1 ? `key ${own.owners} is missing` : `keys ${own.owners} and ${own.clusters} are missing`
  if (documented !== 1) return `Redis holds no state yet: ${keys} until a manager has written there`
  return (
    `Redis holds what an original manager writes, and nothing of ours: ${keys}. Start our manager on this Redis, ` +
    'it takes over in place; until then STATE_SOURCE=original with RBAC_SEMANTICS=original reads what is there (docs/guide/migrate.md)'
  )
}
