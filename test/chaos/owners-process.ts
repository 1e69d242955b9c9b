import { writeSync } from 'node:fs'
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type OwnerPlace, systemClock } from '#model'
import { channelToParent, isChild, KeptProcess } from '#processes'
import { createLogger, silentLogger } from '#runtime'
import { dividedAmong, type OwnerFolders } from '../../src/apps/hub/division.ts'
import { type Hub, type Known, openHub, redisOn } from './hub.ts'

/** A hub whose clusters are shared by processes, each of which is killed from outside, or all of them with the manager. */
export interface OwnersConfig {
  readonly directory: string
  readonly port: number
  readonly clusters: readonly string[]
  readonly intervalMs: number
  readonly processes: number
  readonly stores: { readonly kind: 'servers'; readonly redisPort: number; readonly victoria: string }
}

type ToOwner =
  | { readonly kind: 'start'; readonly place: OwnerPlace; readonly folders: OwnerFolders }
  | { readonly kind: 'drain' }
  | { readonly kind: 'end' }
interface ToManager {
  readonly kind: 'ready'
}

const config = JSON.parse(process.argv[2] ?? '{}') as OwnersConfig
const sockets = join(config.directory, 'sockets')
const say = (...words: (string | number)[]) => writeSync(1, `${words.join(' ')}\n`)

await (isChild() ? owner() : manager())

/** Ends when the manager says so, and at once when that is gone. */
async function owner(): Promise<void> {
  let hub: Promise<Hub> | undefined
  const channel = channelToParent<ToManager, ToOwner>({
    heard(message) {
      if (message.kind === 'start') {
        const { place, folders } = message
        const logger = createLogger('error', { role: 'chaos-owner', process: place.index })
        const others = place.of > 1 ? { place, directory: sockets } : undefined
        hub = openHub({ ...config, folders, ...(others && { others }), logger })
        hub.then(
          () => channel.tell({ kind: 'ready' }),
          (error: unknown) => {
            logger.error({ err: error }, 'an owner cannot start')
            process.exit(1)
          },
        )
      } else if (message.kind === 'end') {
        void hub?.then((opened) => opened[Symbol.asyncDispose]()).finally(() => process.exit(0))
      }
    },
    asked: async () => (await hub)?.drained(say),
    closed: () => process.exit(1),
  })
}

/** Says `owner <index> <pid>` whenever one is started. */
async function manager(): Promise<void> {
  const { directory, processes, stores } = config
  const logger = createLogger('error', { role: 'chaos-manager' })
  const { owners } = await dividedAmong({
    dataDir: directory,
    of: processes,
    redis: redisOn(stores.redisPort),
    withHistory: true,
    version: 'chaos',
    claimFolder: async () => undefined,
    logMaxBytes: 2 ** 28,
    logger,
  })
  await rm(sockets, { recursive: true, force: true })
  await mkdir(sockets, { recursive: true, mode: 0o700 })
  const ready = new Set<number>()
  const kept = owners.map((folders, i) => {
    const place = { index: i + 1, of: processes }
    return new KeptProcess<ToOwner, ToManager>({
      name: `owner-${place.index}`,
      program: { exec: process.argv[1] ?? '', args: process.argv.slice(2) },
      begin: () => ({ kind: 'start', place, folders }),
      end: { kind: 'end' },
      heard() {
        ready.add(place.index)
        if (ready.size === processes) say('ready', processes)
      },
      logger: silentLogger, // that one ended is what is wanted here
      onChange: (pid) => {
        if (pid === undefined) ready.delete(place.index)
        else say('owner', place.index, pid)
      },
    })
  })
  for await (const line of createInterface({ input: process.stdin })) {
    if (line === 'drain') {
      while (ready.size < processes) await systemClock.sleep(50)
      const known = await Promise.all(kept.map((one) => one.channel?.ask<readonly Known[]>({ kind: 'drain' })))
      for (const { cluster, at, value } of known.flatMap((some) => some ?? [])) say('state', cluster, at, value)
      say('drained')
    }
    if (line === 'end') break
  }
  await Promise.all(kept.map((one) => one[Symbol.asyncDispose]()))
  say('ended')
  process.exit(0)
}
