import { useEffect, useSyncExternalStore } from 'react'
import { type Hub, useHub, useLive } from './hooks.ts'
import { type RegistriesShown, RegistriesStore } from './registries-store.ts'
import { useReturn } from './use-return.ts'

/** An unused page does not keep its session alive by asking: after this long it waits for a key or a pointer. */
const restMs = 10 * 60_000

let usedAt = performance.now()
for (const use of ['pointerdown', 'pointermove', 'keydown', 'wheel'])
  document.addEventListener(use, () => (usedAt = performance.now()), { capture: true, passive: true })

/** Whether asking now serves nobody. A session that does not end by itself may be looked at for ever. */
export function isResting({ session, store }: Pick<Hub, 'session' | 'store'>): boolean {
  if (document.hidden || store.current().link.state === 'paused') return true
  const endsByItself = session.current()?.sessionEndsAt != null
  return endsByItself && performance.now() - usedAt > restMs
}

const stores = new WeakMap<Hub['client'], RegistriesStore>()

function storeOf(hub: Hub): RegistriesStore {
  const known = stores.get(hub.client)
  if (known) return known
  const made = new RegistriesStore({
    ask: (signal) => hub.client.registries(signal),
    isIdle: () => isResting(hub),
  })
  document.addEventListener('visibilitychange', made.refresh)
  window.addEventListener('focus', made.refresh)
  stores.set(hub.client, made)
  return made
}

const nobody = { subscribe: () => () => undefined, shown: { registries: null, problem: null } as RegistriesShown }

/** The registries that whoever looks may see; the indicator and the page share one look. */
export function useRegistries(): RegistriesShown & { readonly again: () => void } {
  const hub = useHub()
  const store = storeOf(hub)
  const epoch = useLive(({ fleet }) => (fleet.loaded ? fleet.epoch : -1))
  useEffect(() => store.seenIn(epoch), [store, epoch])
  // Before it is known who looks there is nothing to ask for.
  const isOn = epoch >= 0
  const shown = useSyncExternalStore(isOn ? store.subscribe : nobody.subscribe, () =>
    isOn ? store.current() : nobody.shown,
  )
  useReturn(shown.problem, store.again, () => store.isAsking)
  return { ...shown, again: store.again }
}
