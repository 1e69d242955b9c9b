import { createContext, use, useCallback, useRef, useSyncExternalStore } from 'react'
import { type Client, type ClusterView, isWhole } from '../contract.ts'
import type { Live, LiveStore } from './live-store.ts'
import type { SessionStore } from './session-store.ts'
import { onTick } from './ticker.ts'

export interface Hub {
  readonly client: Client
  readonly store: LiveStore
  readonly session: SessionStore
}

export const HubContext = createContext<Hub | null>(null)

export function useHub(): Hub {
  const hub = use(HubContext)
  if (!hub) throw new Error('the page is not inside a HubContext')
  return hub
}

/** A piece of what is known; the component renders again only when that piece changes. */
export function useLive<T>(select: (live: Live) => T): T {
  const { store } = useHub()
  return useSyncExternalStore(store.subscribe, () => select(store.current()))
}

export const useClusters = (): ReadonlyMap<string, ClusterView> => useLive((live) => live.fleet.clusters)
export const useCluster = (name: string): ClusterView | undefined => useLive((live) => live.fleet.clusters.get(name))

/** What people call a cluster, as it is known when asked; null: nothing but its name. The function stays the same. */
export function useDisplayName(): (cluster: string) => string | null {
  const { store } = useHub()
  return useCallback((cluster) => store.current().fleet.clusters.get(cluster)?.displayName || null, [store])
}

/** A value of the hub's time that is looked at every second; renders only when it differs. */
export function useAtTime<T extends string | number | boolean | null>(read: (now: number) => T): T {
  const { store } = useHub()
  const latest = useRef(read)
  latest.current = read
  const get = useCallback(() => latest.current(store.clock.now()), [store])
  return useSyncExternalStore(onTick, get)
}

/** A stream that is opened again at once is no news. */
const newsMs = 1500

/** The hub has not been heard for a moment that counts: nothing that is shown is known to be so now. */
export function useUnheard(): 'offline' | 'waiting' | null {
  const isOffline = useLive(({ link, fleet }) => fleet.loaded && link.state === 'offline')
  const since = useLive(({ waitingSince, fleet }) => (fleet.loaded ? waitingSince : null))
  const isLong = useAtTime((now) => since !== null && now - since >= newsMs)
  return isOffline ? 'offline' : isLong ? 'waiting' : null
}

/** Whatever is shown is of the past, and the banner says why: the hub is not heard or cannot answer, or the page is paused. */
export function useAllOld(): boolean {
  const isUnheard = useUnheard() !== null
  const isHeld = useLive(
    ({ link, problem, fleet }) =>
      link.state === 'paused' ||
      (link.state === 'polling' && problem !== null) ||
      (fleet.loaded && !isWhole(fleet.store)),
  )
  return isUnheard || isHeld
}

/** The hub's time in steps of `stepMs`: for lists that depend on time as a whole. */
export const useNow = (stepMs = 5000): number => useAtTime((now) => Math.floor(now / stepMs) * stepMs)
