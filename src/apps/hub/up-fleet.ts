import { FleetError } from '#model'
import { startWords } from './demo-words.ts'
import type { KnownMembers, KubeconfigMembers } from './members.ts'

/** What `up` shows. */
export type UpFleet =
  | { readonly kind: 'demo' }
  | { readonly kind: 'kubeconfig'; readonly given: KubeconfigMembers }
  /** the clusters of the folder, as they are */
  | { readonly kind: 'folder'; readonly clusters: number; readonly unread: readonly string[] }

class OwnClustersError extends FleetError {
  override readonly name = 'OwnClustersError'
  readonly code = 'own_clusters'
  readonly retryable = false
}

export interface UpFleetWish {
  /** --demo */
  readonly demo: boolean
  /** what the kubeconfig holds; undefined: there is none */
  readonly given: KubeconfigMembers | undefined
  /** somebody named the kubeconfig; else it lay at the usual place */
  readonly isNamed: boolean
  readonly known: KnownMembers
  readonly dataDir: string
}

/**
 * A folder of own clusters goes on with them where no kubeconfig is given, or one at the usual place that none of them is of.
 * @throws OwnClustersError where the demo is asked for in such a folder
 */
export function chooseFleet({ demo, given, isNamed, known, dataDir }: UpFleetWish): UpFleet {
  const isOwn = known.own.size > 0 && known.simulated.length === 0
  if (demo) {
    if (!isOwn) return { kind: 'demo' }
    throw new OwnClustersError(
      `${dataDir} holds ${clusters(known.own.size)} of your own (${[...known.own.keys()].slice(0, 3).join(', ')}${known.own.size > 3 ? ', …' : ''}), and the demo would stand among them; ` +
        'start it in a folder of its own: --demo --data-dir FOLDER',
    )
  }
  const isFrom = (paths: readonly string[]) => [...known.own.values()].some((path) => path && paths.includes(path))
  if (isOwn && !(given && (isNamed || isFrom(given.paths))))
    return { kind: 'folder', clusters: known.own.size, unread: given?.paths ?? [] }
  return given ? { kind: 'kubeconfig', given } : { kind: 'demo' }
}

/** The first line a person reads. */
export function fleetStartWords(fleet: UpFleet, demo: boolean): string {
  if (fleet.kind === 'demo') return startWords(demo)
  if (fleet.kind === 'kubeconfig') return `Starting: ${fleetWords(fleet)} …`
  const { clusters: count, unread } = fleet
  const going = `the ${clusters(count)} of this folder ${count === 1 ? 'goes' : 'go'} on`
  return unread.length === 0
    ? `Starting: no kubeconfig given: ${going} …`
    : `Starting: ${going}; ${unread.join(', ')} is not read, as none of them is of it (--kubeconfig ${unread[0]} adds its contexts) …`
}

export function fleetWords(fleet: UpFleet): string {
  if (fleet.kind === 'demo') return 'a simulated fleet'
  if (fleet.kind === 'folder') return `${clusters(fleet.clusters)} of its folder`
  return `${clusters(fleet.given.members.length)} of ${fleet.given.paths.join(', ')}`
}

const clusters = (count: number): string => `${count} cluster${count === 1 ? '' : 's'}`
