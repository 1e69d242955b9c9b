import { type ComponentType, type LazyExoticComponent, lazy } from 'react'

/** The script of a view did not come, however often it was asked for. */
export class NotLoaded extends Error {
  override readonly name = 'NotLoaded'
}

/** Between one attempt and the next, ms: about as long as a hub takes to start. */
const waitsMs = [500, 1000, 2000, 4000, 8000]

/**
 * A view whose script is fetched when it is shown first. What does not come is asked for again: a hub that restarts just then is no
 * reason to show nothing.
 */
export function lazyView<V extends object>(
  load: () => Promise<ComponentType<V>>,
): LazyExoticComponent<ComponentType<V>> {
  return lazy(async () => ({ default: await loaded(load) }))
}

/** @throws NotLoaded after the last attempt: only the page loaded anew helps, as after an update of the hub */
export async function loaded<T>(load: () => Promise<T>): Promise<T> {
  for (const waitMs of waitsMs) {
    try {
      return await load()
    } catch (cause) {
      console.warn('a part of the page is not loaded yet', cause)
      await new Promise((resolve) => setTimeout(resolve, waitMs))
    }
  }
  return load().catch((cause: unknown) => {
    throw new NotLoaded(cause instanceof Error ? cause.message : String(cause), { cause })
  })
}
