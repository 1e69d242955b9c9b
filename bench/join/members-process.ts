import { setTimeout as sleep } from 'node:timers/promises'
import pLimit from 'p-limit'
import { messagesOf } from '../ingest/messages.ts'
import { MemberStream } from './member-stream.ts'
import type { Identity } from './membership.ts'

/* Members of the bench in a process of their own: connected, with a sign of life each half minute, until the process is ended. */

export interface Connected {
  readonly connected: number
  /** ms from the first dial to the last first batch */
  readonly tookMs: number
}

const { address, key } = JSON.parse(process.argv[2] ?? '{}') as { readonly address: string; readonly key: string }
const HEALTH_MS = 30_000
const DIALED_AT_ONCE = 64
const messages = messagesOf('quiet', 1)
let ended = 0

process.once('message', async (identities: readonly Identity[]) => {
  const startedAt = performance.now()
  const atOnce = pLimit(DIALED_AT_ONCE)
  await Promise.all(identities.map(({ name, certificate }) => atOnce(() => live(name, certificate))))
  process.send?.({ connected: identities.length, tookMs: performance.now() - startedAt } satisfies Connected)
  process.on('message', () => process.send?.(ended))
})
process.on('disconnect', () => process.exit())

async function live(name: string, certificate: string): Promise<void> {
  for (let tries = 0; ; tries++)
    try {
      const stream = await MemberStream.open({ name, address, certificate, key, messages })
      await stream.delivered
      void stream.ended.then(() => ended++)
      // As real ones, which started at any time.
      setTimeout(() => setInterval(() => stream.health(), HEALTH_MS), Math.random() * HEALTH_MS)
      return
    } catch (error) {
      if (tries >= 20) throw error
      await sleep(250 + Math.random() * 1_000)
    }
}
