import type { KubeClientOptions } from '#kube'
import { seconds } from '#model'
import { createLogger, keepHeapTight, type LogLevel, type Part, startParts } from '#runtime'

export type HubLogger = ReturnType<typeof createLogger>

/** What every role is started with. */
export interface RoleOptions<C> {
  readonly config: C
  readonly warnings: readonly string[]
  readonly version: string
}

export function roleLogger(level: LogLevel, role: string, version: string, warnings: readonly string[]): HubLogger {
  const logger = createLogger(level, { role, version })
  for (const warning of warnings) logger.warn({}, warning)
  return logger
}

/**
 * How the hub asks its own API server: statuses of many connections are written at once, and those that arrive together
 * share one sync to disk there. One that was away is asked again soon: all that the hub does waits for it.
 */
export const HUB_CLIENT: KubeClientOptions = { connections: 8, keptConnections: 8, recoveryMs: seconds(2) }

/**
 * Starts parts, waits for SIGTERM or SIGINT, stops them. A second signal ends the process at once.
 * @param ready called when all run
 */
export async function runUntilSignal(parts: readonly Part[], logger: HubLogger, ready: () => void): Promise<void> {
  const stopAsked = new Promise<NodeJS.Signals>((resolve) => {
    let asked = false
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.on(signal, () => {
        if (asked) process.exit(130)
        asked = true
        resolve(signal)
      })
    }
  })
  keepHeapTight()
  const running = await startParts(parts, { logger })
  ready()
  const signal = await stopAsked
  logger.info({ signal }, 'stopping')
  await running.stop()
  process.exit(0)
}

/** A part that works beside the others, and whose failure is theirs no matter. */
export function inBackground(name: string, work: (signal: AbortSignal) => Promise<void>, logger: HubLogger): Part {
  const stop = new AbortController()
  let running: Promise<void> | undefined
  return {
    name,
    start() {
      running = work(stop.signal).catch((error: unknown) => {
        if (!stop.signal.aborted) logger.warn({ part: name, err: error }, 'work in the background ended too early')
      })
      return Promise.resolve()
    },
    async stop() {
      stop.abort()
      await running
    },
  }
}

/** A part around something that opens and closes. */
export function part<T extends AsyncDisposable>(
  name: string,
  open: (signal: AbortSignal) => Promise<T>,
): Part & { get(): T } {
  let opened: T | undefined
  return {
    name,
    async start(signal) {
      opened = await open(signal)
    },
    async stop() {
      await opened?.[Symbol.asyncDispose]()
      opened = undefined
    },
    get() {
      if (opened === undefined) throw new Error(`${name} is not started`)
      return opened
    },
  }
}
