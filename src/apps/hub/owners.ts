import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { AuditTrail } from '#audit'
import { type ClusterName, ownerName, ownerOf, type SourceId } from '#model'
import { KeptProcess, OtherProcessGoneError } from '#processes'
import { type Logger, type Metrics, type MetricsMoment, metricsText } from '#runtime'
import type { Division } from './division.ts'
import { keptIn } from './joins.ts'
import type { ToManager, ToOwner } from './owner-messages.ts'
import { RoleGaps } from './role-gaps.ts'

export interface OwnersOptions {
  readonly division: Division
  readonly dataDir: string
  /** takes what the owners tell of members that come and go */
  readonly trail: () => Pick<AuditTrail, 'record' | 'flush'>
  readonly metrics: Metrics
  readonly logger: Logger
}

interface Kept {
  readonly process: KeptProcess<ToOwner, ToManager>
  faults: Readonly<Record<string, string>>
}

/** After a lost lease another manager waits five seconds; what did not end by itself by then is ended. */
const END_WITHIN_MS = 4_000
const METRICS_WITHIN_MS = 2_000
/** of the path of a unix socket, on every system Node runs on */
const MAX_SOCKET_PATH = 100
const STARTING = { start: 'it is started' } as const

/** The processes that share the fleet, kept running, as the manager sees them. */
export class Owners implements AsyncDisposable {
  /** as the owners say them */
  readonly agentRoles = new RoleGaps()
  readonly #options: OwnersOptions
  readonly #socketDirectory: string
  readonly #kept: readonly Kept[]

  private constructor(options: OwnersOptions, socketDirectory: string) {
    this.#options = options
    this.#socketDirectory = socketDirectory
    const { owners } = options.division
    this.#kept = owners.map((folders, i) => this.#keep({ index: i + 1, of: owners.length }, folders))
  }

  /** Begins to start them; does not wait. */
  static async start(options: OwnersOptions): Promise<Owners> {
    return new Owners(options, await socketDirectory(options.dataDir))
  }

  /** Why the fleet is not looked after in full, a sentence per check that fails; {} where it is. */
  faults(): Readonly<Record<string, string>> {
    return Object.fromEntries(
      this.#kept.flatMap(({ process, faults }) =>
        Object.entries(faults).map(([check, fault]) => [`${process.name} ${check}`, fault]),
      ),
    )
  }

  /**
   * Resolves when it is on disk at the owner of the cluster.
   * @throws OtherProcessGoneError, OtherProcessError
   */
  async removeSource(cluster: ClusterName, source: SourceId): Promise<void> {
    const channel = this.#kept[ownerOf(cluster, this.#kept.length) - 1]?.process.channel
    if (!channel) throw new OtherProcessGoneError()
    await channel.ask({ kind: 'remove-source', cluster, source })
  }

  /** What they counted; one that does not answer in time is left out. */
  async moments(): Promise<readonly MetricsMoment[]> {
    const all = await Promise.all(this.#kept.map(({ process }) => momentOf(process)))
    return all.flatMap((moment) => (moment ? [moment] : []))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#kept.map(({ process }) => process[Symbol.asyncDispose]()))
    await rm(this.#socketDirectory, { recursive: true, force: true })
  }

  #keep(place: Extract<ToOwner, { kind: 'start' }>['place'], folders: Division['owners'][number]): Kept {
    const { logger, metrics } = this.#options
    const [, exec = '', ...args] = process.argv
    const name = ownerName(place) ?? 'owner'
    const info = metrics.gauge('clusterpulse_owner_process_info', 'Processes that each own a part of the fleet.', [
      'process',
      'pid',
    ])
    const ends = metrics.counter('clusterpulse_owner_process_ends_total', 'Times such a process ended.', ['process'])
    let pid: string | undefined
    const kept: Kept = {
      faults: STARTING,
      process: new KeptProcess<ToOwner, ToManager>({
        name,
        program: { exec, args },
        begin: () => ({ kind: 'start', place, folders, socketDirectory: this.#socketDirectory }),
        end: { kind: 'end' },
        heard: (message) => {
          if (message.kind === 'faults') kept.faults = message.faults
          else if (message.kind === 'role-gaps') this.agentRoles.set(message.cluster, message.gaps)
        },
        asked: async (message) => {
          if (message.kind === 'audited') await keptIn(this.#options.trail)(message.entry)
        },
        logger,
        endWithinMs: END_WITHIN_MS,
        onChange: (started) => {
          if (pid !== undefined) {
            info.remove({ process: name, pid })
            ends.inc({ process: name })
          }
          pid = started?.toString()
          if (pid !== undefined) info.set({ process: name, pid }, 1)
          else kept.faults = STARTING
        },
      }),
    }
    return kept
  }
}

/** The page of /metrics of a manager and its owners, if there are any just now. */
export async function metricsOfAll(metrics: Metrics, owners: Owners | undefined): Promise<string> {
  return metricsText([await metrics.moment(), ...((await owners?.moments()) ?? [])])
}

async function momentOf(process: KeptProcess<ToOwner, ToManager>): Promise<MetricsMoment | undefined> {
  const { channel } = process
  if (!channel) return undefined
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), METRICS_WITHIN_MS)
  })
  try {
    return await Promise.race([channel.ask<MetricsMoment>({ kind: 'metrics' }), late])
  } catch {
    return undefined // it ended meanwhile
  } finally {
    clearTimeout(timer)
  }
}

/** Only processes of the same user get in. A long path of the data folder would be no name for a socket. */
async function socketDirectory(dataDir: string): Promise<string> {
  const beside = join(dataDir, 'sockets')
  if (Buffer.byteLength(join(beside, '64.sock')) > MAX_SOCKET_PATH) return mkdtemp(join(tmpdir(), 'clusterpulse-'))
  await rm(beside, { recursive: true, force: true })
  await mkdir(beside, { recursive: true, mode: 0o700 })
  await chmod(beside, 0o700)
  return beside
}
