import { useEffect, useSyncExternalStore } from 'react'
import { ApiProblem, type Client, type TypeView } from './contract.ts'
import { useHub, useLive } from './live/hooks.ts'
import { useSession } from './session.ts'

/** A type as the search and the navigation need it. */
export interface TypeSeen {
  readonly name: string
  readonly title: string
  readonly kind: string
  /** what people type for it: plural, singular, short names */
  readonly names: readonly string[]
  /** the MetricSource that declares it; null: it is built in */
  readonly source: string | null
}

const seenOf = ({ type, sources: [first] }: TypeView): TypeSeen => ({
  name: type,
  title: first?.title ?? type,
  kind: first?.kind ?? '',
  names: first?.names ?? [],
  source: first?.isDeclared ? `MetricSource ${first.id}` : null,
})

/** Registries and members, which stand on no cluster, have pages of their own. */
export const isOnClusters = ({ sources }: TypeView): boolean => sources[0]?.scope !== 'Fleet'

let seen: readonly TypeSeen[] = []
/** what of members there is for whoever looks: `none`, the hub has none */
let members: 'none' | 'empty' | 'some' = 'none'
let askedIn = -1
const listeners = new Set<() => void>()
const subscribe = (listener: () => void) => {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** What a page that has asked for types anyway has learnt. */
export function noteTypes(types: readonly TypeView[]): void {
  const next = types.filter(isOnClusters).map(seenOf)
  if (JSON.stringify(next) === JSON.stringify(seen)) return
  seen = next
  for (const listener of listeners) listener()
}

function noteMembers(there: typeof members): void {
  if (members === there) return
  members = there
  for (const listener of listeners) listener()
}

async function membersThere(client: Client): Promise<typeof members> {
  try {
    const { count } = await client.type('members')
    return count === 0 ? 'empty' : 'some'
  } catch (cause) {
    if (cause instanceof ApiProblem && cause.status === 404) return 'none'
    throw cause
  }
}

async function ask(client: Client, epoch: number): Promise<void> {
  try {
    const [{ items }, there] = await Promise.all([client.types(), membersThere(client)])
    if (askedIn !== epoch) return
    noteTypes(items)
    noteMembers(there)
  } catch (cause) {
    // The way to the types is not shown; their page says why when it is opened.
    console.warn('the types are not known', cause)
    if (askedIn === epoch) askedIn = -1
  }
}

/** Types that whoever looks may see: asked once, and again when what may be seen became another. */
export function useTypesSeen(): readonly TypeSeen[] {
  const { client } = useHub()
  const epoch = useLive(({ fleet }) => (fleet.loaded ? fleet.epoch : -1))
  useEffect(() => {
    if (epoch < 0) {
      // Nobody looks, or nothing may be shown.
      askedIn = -1
      noteTypes([])
      noteMembers('none')
    } else if (askedIn !== epoch) {
      askedIn = epoch
      void ask(client, epoch)
    }
  }, [client, epoch])
  return useSyncExternalStore(subscribe, () => seen)
}

/** Whether there is anything to see on the pages of types; administrators may declare the first. */
export function useSeesTypes(): boolean {
  const types = useTypesSeen()
  const administrator = useSession()?.user?.administrator === true
  return administrator || types.length > 0
}

/** Whether the hub has members that somebody sees; administrators may accept the first. */
export function useSeesMembers(): boolean {
  useTypesSeen()
  const there = useSyncExternalStore(subscribe, () => members)
  const administrator = useSession()?.user?.administrator === true
  return there === 'some' || (administrator && there === 'empty')
}
