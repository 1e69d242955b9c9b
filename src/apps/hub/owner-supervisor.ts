import type { AuditTrail } from '#audit'
import type { LeaderElection } from '#controller'
import { type EventBus, openEvents } from '#events'
import { FleetError, seconds, systemClock } from '#model'
import { type Metrics, type Part, retryForever } from '#runtime'
import { RedisMirror } from '#state'
import { type DivisionWanted, dividedAmong } from './division.ts'
import type { ControllerName, HubControllers } from './hub-controllers.ts'
import { metricsOfAll, Owners } from './owners.ts'
import { type HubLogger, part } from './run.ts'

export interface OwnerSupervisorOptions {
  readonly division: Omit<DivisionWanted, 'logger' | 'signal'>
  /** absent: the only candidate */
  readonly election?: (name: ControllerName) => LeaderElection
  readonly ofFleet: HubControllers['ofFleet']
  readonly trail: () => Pick<AuditTrail, 'record' | 'flush'>
  readonly metrics: Metrics
  readonly logger: HubLogger
}

/** A fleet shared among processes, from the side of the one that starts them. */
export interface OwnerSupervisor {
  readonly parts: readonly Part[]
  /** why what the owners write cannot be followed here */
  redisFault(): string | undefined
  /** why the fleet is not looked after, although this process leads; undefined where it is, or another one leads */
  fault(): string | undefined
  metricsText(): Promise<string>
}

/**
 * The fleet shared among processes: while this one leads, its data is divided among them, and they run. What they write to
 * Redis is followed here, for the controllers that need all of it.
 */
export function createOwnerSupervisor({
  division,
  election,
  ofFleet,
  trail,
  metrics,
  logger,
}: OwnerSupervisorOptions): OwnerSupervisor {
  const mirror = part('mirror', () => {
    const { redis: connection, version: program } = division
    return Promise.resolve(new RedisMirror({ connection, program, logger: logger.child({ part: 'mirror' }) }))
  })
  const events = part<EventBus>('events', () => Promise.resolve(openEvents({ kind: 'follow', source: mirror.get() })))
  let owners: Owners | undefined
  let fault: string | undefined

  const whileLeading = async (signal: AbortSignal): Promise<void> => {
    fault = 'the clusters are divided among the processes'
    const divided = await retryForever(
      (attempt) =>
        dividedAmong({ ...division, logger: logger.child({ part: 'division' }), signal }).catch((error: unknown) => {
          fault = FleetError.from(error).message
          if (attempt % 10 === 0) logger.error({ err: error }, 'the clusters cannot be divided among the processes yet')
          throw error
        }),
      { clock: systemClock, signal, fromMs: seconds(1), toMs: seconds(15) },
    )
    await using running = await Owners.start({ division: divided, dataDir: division.dataDir, trail, metrics, logger })
    owners = running
    fault = undefined
    const { agentRoles } = running
    const fleet = { state: mirror.get(), events: events.get(), ingester: running, agentRoles }
    await ofFleet(fleet, signal)
    owners = undefined
  }

  const stop = new AbortController()
  let leading: Promise<void> | undefined
  const lead = async (signal: AbortSignal): Promise<void> => {
    try {
      await whileLeading(signal)
    } catch (error) {
      if (!signal.aborted) logger.error({ err: error }, 'the processes of the fleet ended unexpectedly')
    } finally {
      fault = undefined
    }
  }
  const owned: Part = {
    name: 'owners',
    start() {
      const one = election?.('connections')
      leading = one ? one.run(lead, stop.signal) : lead(stop.signal)
      return Promise.resolve()
    },
    async stop() {
      stop.abort()
      await leading
    },
  }
  return {
    parts: [mirror, events, owned],
    redisFault() {
      const availability = mirror.get().availability()
      return availability.state === 'unavailable' ? availability.reason : undefined
    },
    fault() {
      if (fault !== undefined) return fault
      const faults = Object.entries(owners?.faults() ?? {})
      return faults.length === 0 ? undefined : faults.map(([what, why]) => `${what}: ${why}`).join('; ')
    },
    metricsText: () => metricsOfAll(metrics, owners),
  }
}
