import { type EmbeddedStateOptions, EmbeddedStateStore } from './embedded.ts'
import { type RedisStateOptions, RedisStateStore } from './redis-store.ts'
import type { StateStore } from './types.ts'

/** Where state is kept by the process that writes it. Another process that only reads follows with a RedisMirror. */
export type StateConfig =
  | ({ readonly kind: 'embedded' } & EmbeddedStateOptions)
  | ({ readonly kind: 'redis' } & RedisStateOptions)

/**
 * Opens the store with what a former process left in it.
 * @throws DirectoryLockedError (embedded), StoreUnavailableError (redis)
 */
export function openState(config: StateConfig): Promise<StateStore> {
  return config.kind === 'embedded' ? EmbeddedStateStore.open(config) : RedisStateStore.open(config)
}
