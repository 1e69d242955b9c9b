import type { Metrics } from '#runtime'
import type { Counted } from './session-events.ts'

/** What the streams count; nothing without a registry. */
export function streamMetrics(
  metrics: Metrics | undefined,
  now: {
    streams(): number
    newcomerBytes(): number
    /** absent: there are no other owners */
    relayed?(): number
  },
) {
  const { streams, newcomerBytes, relayed } = now
  metrics?.gauge(
    'clusterpulse_agent_streams',
    'Open streams of agents, with the process that has their session.',
    [],
    (gauge) => gauge.set(streams()),
  )
  metrics?.gauge(
    'clusterpulse_agent_newcomer_bytes',
    'Bytes held of messages of streams that have not registered.',
    [],
    (gauge) => gauge.set(newcomerBytes()),
  )
  if (relayed)
    metrics?.gauge(
      'clusterpulse_agent_relayed_streams',
      'Open streams that came to this process and are brought to another one, which has their session.',
      [],
      (gauge) => gauge.set(relayed()),
    )
  const messages = metrics?.counter(
    'clusterpulse_agent_messages_total',
    'Messages of agents by sort, and how they fared.',
    ['what'],
  )
  const bytes = metrics?.counter('clusterpulse_agent_received_bytes_total', 'Bytes of messages of agents.')
  const refused = metrics?.counter('clusterpulse_agent_refused_total', 'Connections and streams refused, by reason.', [
    'reason',
  ])
  const ended = metrics?.counter('clusterpulse_agent_ended_total', 'Streams the hub ended, by code.', ['code'])
  const contested = metrics?.counter(
    'clusterpulse_agent_contested_total',
    'Times two agents took one identity from each other.',
  )
  return {
    message: (what: Counted) => messages?.inc({ what }),
    bytes: (count: number) => bytes?.inc(count),
    refused: (
      reason: 'connections' | 'handshake' | 'streams' | 'unnamed' | 'unauthenticated' | 'too_large' | 'newcomer_bytes',
    ) => refused?.inc({ reason }),
    ended: (code: string, streams: number) => ended?.inc({ code }, streams),
    contested: () => contested?.inc(),
  }
}
