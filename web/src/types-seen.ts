import { useEffect, useSyncExternalStore } from 'react'
import type { Client, TypeView } from './contract.ts'
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

/** Registries, which stand on no cluster, have a page of their own. */
export const isOnClusters = ({ sources }: TypeView): boolean => sources[0]?.scope !== 'Fleet'

let seen: readonly TypeSeen[] = []
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

async function ask(client: Client, epoch: number): Promise<void> {
  try {
    const { items } = await client.types()
    if (askedIn === epoch) noteTypes(items)
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
