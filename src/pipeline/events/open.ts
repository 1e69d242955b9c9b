import type { ChangeStep } from '#model'
import { InProcessEventBus, type InProcessEventsOptions } from './in-process.ts'
import type { EventBus } from './types.ts'

/** Something that names its steps, and tells of each in the turn in which it can be read: the mirror of another process's state. */
export interface StepSource {
  /** @returns ends the calls */
  onSteps(listener: (steps: readonly ChangeStep[]) => void): () => void
}

/** Where steps come from: `publish` in this process, or a source that follows another process and names them. */
export type EventsConfig =
  | ({ readonly kind: 'in-process' } & InProcessEventsOptions)
  | ({ readonly kind: 'follow'; readonly source: StepSource } & InProcessEventsOptions)

/** A bus that starts empty. Closing it ends every subscription. */
export function openEvents(config: EventsConfig): EventBus {
  const bus = new InProcessEventBus(config)
  if (config.kind === 'in-process') return bus
  const stop = config.source.onSteps((steps) => bus.take(steps))
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
