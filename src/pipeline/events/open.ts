import type { Change } from '#model'
import { InProcessEventBus, type InProcessEventsOptions } from './in-process.ts'
import type { EventBus } from './types.ts'

/** Something that tells of changes once they can be read from state: the mirror of another process's state. */
export interface ChangeSource {
  /** @returns ends the calls */
  onChanges(listener: (changes: readonly Change[]) => void): () => void
}

/** Where changes come from: `publish` in this process, or a source that follows another process. */
export type EventsConfig =
  | ({ readonly kind: 'in-process' } & InProcessEventsOptions)
  | ({ readonly kind: 'follow'; readonly source: ChangeSource } & InProcessEventsOptions)

/** A bus that starts empty, with numbers of its own. Closing it ends every subscription. */
export function openEvents(config: EventsConfig): EventBus {
  const bus = new InProcessEventBus(config)
  if (config.kind === 'in-process') return bus
  const stop = config.source.onChanges((changes) => void bus.publish(changes))
  return {
    publish: (changes) => bus.publish(changes),
    head: () => bus.head(),
    subscribe: (listener, after) => bus.subscribe(listener, after),
    [Symbol.asyncDispose]: async () => {
      stop()
      await bus[Symbol.asyncDispose]()
    },
  }
}
