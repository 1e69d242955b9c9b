import { writeSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { createLogger } from '#runtime'
import { openHub } from './hub.ts'

/** A hub that receives agents and is killed from outside. */
export interface HubConfig {
  readonly directory: string
  readonly port: number
  readonly clusters: readonly string[]
  readonly intervalMs: number
  readonly stores:
    | { readonly kind: 'embedded' }
    | { readonly kind: 'servers'; readonly redisPort: number; readonly victoria: string }
}

const { directory, stores, ...config } = JSON.parse(process.argv[2] ?? '{}') as HubConfig
const say = (...words: (string | number)[]) => writeSync(1, `${words.join(' ')}\n`)

const hub = await openHub({
  ...config,
  folders: { log: join(directory, 'log'), history: join(directory, 'history') },
  stores: stores.kind === 'embedded' ? { kind: 'embedded', directory: join(directory, 'state') } : stores,
  logger: createLogger('error', { role: 'chaos-hub' }),
})
say('ready', hub.port)

// `drain`: says when everything every agent holds is in state and in history. `end`: stops in order.
for await (const line of createInterface({ input: process.stdin })) {
  if (line === 'drain') {
    for (const { cluster, at, value } of await hub.drained(say)) say('state', cluster, at, value)
    say('drained')
  }
  if (line === 'end') break
}
await hub[Symbol.asyncDispose]()
say('ended')
process.exit(0)
