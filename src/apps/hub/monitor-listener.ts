import { readFileSync } from 'node:fs'
import type { ServedMembers } from '#api'
import type { Attention } from '#attention'
import { systemClock } from '#model'
import { Monitor, type OneTimeNames } from '#monitor'
import type { Metrics, Part } from '#runtime'
import type { StateReader } from '#state'
import type { AccessConfig } from './config-access.ts'
import type { MonitorSettings } from './config-monitor.ts'
import { type HubLogger, part } from './run.ts'

export interface MonitorPartOptions {
  readonly config: MonitorSettings
  /** the certificate of the page, where it has one */
  readonly tls: AccessConfig['tls'] | undefined
  readonly state: () => StateReader
  /** absent: this hub has no members */
  readonly members?: () => ServedMembers
  readonly attention: () => Attention
  /** of stream tickets; absent: they are good in this process alone */
  readonly ticketNames?: () => OneTimeNames
  /** where history is kept unless the configuration says; absent: in memory alone */
  readonly historyDirectory?: string
  readonly metrics: Metrics
  readonly logger: HubLogger
}

/** Cluster Monitor's interface on a listener of its own: its paths would meet those of the page. `address()` after it started. */
export function monitorPart(options: MonitorPartOptions): { readonly part: Part; address(): string } {
  const { config, tls, state, attention, metrics, logger } = options
  const { historyDirectory = options.historyDirectory, ...listener } = config
  const monitor = part('monitor', (signal) =>
    Monitor.open(
      {
        config: {
          ...listener,
          ...(tls && { tls: { cert: readFileSync(tls.certFile, 'utf8'), key: readFileSync(tls.keyFile, 'utf8') } }),
        },
        state: state(),
        attention: attention(),
        ...(options.members && { members: options.members().members }),
        ...(historyDirectory !== undefined && { historyDirectory }),
        ...(options.ticketNames && { ticketNames: options.ticketNames() }),
        logger: logger.child({ part: 'monitor' }),
        metrics,
        clock: systemClock,
      },
      signal,
    ),
  )
  return { part: monitor, address: () => monitor.get().url }
}
