import { minutes, type NodeSnapshot } from '#model'
import { smooth } from './rhythm.ts'

const HOUR = minutes(60)
const DAY = 24 * HOUR

/** What was wrong at one moment. */
export interface Trouble {
  /** factor of what is asked for */
  readonly rush: number
  /** factor of memory in use */
  readonly leak: number
  /** share of pods that wait for a place or for their image */
  readonly waiting: number
  loses(node: Placed): boolean
}

const none: Trouble = { rush: 1, leak: 1, waiting: 0, loses: () => false }

/** One thing that went wrong, and ended. */
interface Happening {
  readonly cluster: string
  /** before the hub knew the cluster, ms */
  readonly agoMs: number
  readonly forMs: number
  /** @param along from 0 at its beginning to 1 at its end */
  readonly was: (along: number) => Partial<Trouble>
}

/** Up fast, down slowly. */
const swell = (along: number): number => smooth(along * 4) * smooth((1 - along) * 1.6)
type Placed = Pick<NodeSnapshot, 'name' | 'labels' | 'roles'>

const zoneOf = ({ labels }: Placed): string => labels['topology.kubernetes.io/zone'] ?? ''
const isWorker = ({ roles }: Placed): boolean => !roles.includes('control-plane')

const happenings: readonly Happening[] = [
  { cluster: 'prod-east', agoMs: minutes(41), forMs: minutes(12), was: (x) => ({ rush: 1 + 0.25 * swell(x) }) },
  { cluster: 'prod-east', agoMs: 13 * HOUR, forMs: 100 * minutes(1), was: (x) => ({ rush: 1 + 0.45 * swell(x) }) },
  {
    // A zone went dark.
    cluster: 'prod-east',
    agoMs: 9 * DAY,
    forMs: 4 * HOUR,
    was: () => ({
      loses: (node) => isWorker(node) && zoneOf(node).endsWith('b'),
      waiting: 0.08,
      degraded: ['network'],
    }),
  },
  { cluster: 'prod-west', agoMs: 4 * DAY, forMs: 22 * HOUR, was: (x) => ({ leak: 1 + 0.5 * x }) },
  { cluster: 'prod-west', agoMs: 19 * HOUR, forMs: 2 * HOUR, was: () => ({ waiting: 0.05 }) },
  { cluster: 'staging', agoMs: 6 * HOUR, forMs: 95 * minutes(1), was: () => ({ waiting: 0.18 }) },
  { cluster: 'staging', agoMs: 16 * DAY, forMs: 9 * HOUR, was: () => ({ waiting: 0.3 }) },
  {
    // Somebody pulled a plug.
    cluster: 'edge-paris',
    agoMs: 6 * DAY,
    forMs: 14 * HOUR,
    was: () => ({ loses: ({ name }) => name.endsWith('2') }),
  },
  { cluster: 'gpu-lab', agoMs: 14 * DAY, forMs: 3 * DAY, was: (x) => ({ rush: 1 + 0.18 * swell(x) }) },
  { cluster: 'gpu-lab', agoMs: 20 * HOUR, forMs: 8 * HOUR, was: (x) => ({ rush: 1 + 0.15 * swell(x) }) },
]

/** @param agoMs before the hub knew the cluster */
export function troubleAt(cluster: string, agoMs: number): Trouble {
  const now = happenings.filter((one) => one.cluster === cluster && agoMs <= one.agoMs && agoMs > one.agoMs - one.forMs)
  return Object.assign({ ...none }, ...now.map(({ was, agoMs: begun, forMs }) => was((begun - agoMs) / forMs)))
}
