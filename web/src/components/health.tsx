import type { ReactNode } from 'react'
import type { ClusterView, Health } from '../contract.ts'
import { useAtTime } from '../live/hooks.ts'
import { type Need, needWord } from '../model/cluster.ts'
import { formatSpan } from '../model/format.ts'

/** Each state has a shape of its own: colour only repeats what shape and word say. */
const shapes: Readonly<Record<Need, ReactNode>> = {
  healthy: (
    <>
      <circle cx="8" cy="8" r="6.5" className="fill" />
      <path d="M5 8.2l2.1 2.1L11.2 6" className="sign" />
    </>
  ),
  degraded: (
    <>
      <path d="M8 1.4 15 14H1z" className="fill" />
      <path d="M8 6v3.6M8 11.6v.4" className="sign" />
    </>
  ),
  unhealthy: (
    <>
      <path d="M5 1h6l4 4v6l-4 4H5l-4-4V5z" className="fill" />
      <path d="M5.6 5.6l4.8 4.8M10.4 5.6l-4.8 4.8" className="sign" />
    </>
  ),
  unknown: (
    <>
      <circle cx="8" cy="8" r="6.2" className="ring" />
      <path d="M6.3 6.4c.1-2 3.4-2 3.4 0 0 1.3-1.7 1.3-1.7 2.6M8 11.2v.3" className="line" />
    </>
  ),
  stale: (
    <>
      <rect x="2" y="2" width="12" height="12" rx="2" className="ring" />
      <path d="M8 5v3.4l2.2 1.4" className="line" />
    </>
  ),
}

export function HealthMark({
  need,
  bare = false,
  word,
  tip,
}: {
  need: Need
  bare?: boolean
  word?: string
  /** said on hover: the word may be cut */
  tip?: string
}): ReactNode {
  return (
    <span className={`health is-${need}`} {...(tip && { 'data-tip': tip })}>
      <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
        {shapes[need]}
      </svg>
      <span className={bare ? 'vh' : 'health-word'}>{word ?? needWord[need]}</span>
    </span>
  )
}

const slots = 60
const step = 3
const height = 18
/** Worse is taller: the strip reads without colour. */
const heights: Readonly<Record<Health, number>> = { healthy: 7, degraded: 12, unhealthy: 18, unknown: 4 }

/** The last rounds of one cluster, newest at the right. */
export function HeartbeatStrip({ heartbeats, filtered }: Pick<ClusterView, 'heartbeats' | 'filtered'>): ReactNode {
  const shown = heartbeats.slice(-slots)
  const paths: Record<Health, string> = { healthy: '', degraded: '', unhealthy: '', unknown: '' }
  for (const [index, { health }] of shown.entries()) {
    const x = (slots - shown.length + index) * step
    paths[health] += `M${x} ${height}v-${heights[health]}h2v${heights[health]}z`
  }
  const text = useAtTime((now) => heartbeatText({ heartbeats: shown, filtered }, now))
  return (
    <svg
      className="heartbeats"
      viewBox={`0 0 ${slots * step} ${height}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={text}
      data-tip={text}
    >
      <path className="base" d={`M0 ${height - 0.5}h${slots * step}`} />
      {(['healthy', 'degraded', 'unhealthy', 'unknown'] as const).map((health) => (
        <path key={health} className={`is-${health}`} d={paths[health]} />
      ))}
    </svg>
  )
}

/** Where policies hide a part, a round tells only whether the cluster answered: health of the past would tell of what is hidden. */
const answerWord: Readonly<Record<Health, string>> = {
  healthy: 'answered',
  degraded: 'answered',
  unhealthy: 'without an answer',
  unknown: 'unknown',
}

const answerState: Readonly<Record<Health, string>> = {
  healthy: 'It has answered',
  degraded: 'It has answered',
  unhealthy: 'It has not answered',
  unknown: 'Not known',
}

/** The strip in words: how many rounds ended how, and since when it is as it is. */
export function heartbeatText(
  { heartbeats, filtered }: Pick<ClusterView, 'heartbeats' | 'filtered'>,
  now: number,
): string {
  const last = heartbeats.at(-1)
  if (!last) return 'No round has ended yet'
  const counts = new Map<Health, number>()
  for (const { health } of heartbeats) counts.set(health, (counts.get(health) ?? 0) + 1)
  const sentence = [...counts].map(([health, count]) => `${count} ${filtered ? answerWord[health] : health}`).join(', ')
  let since = last
  for (const beat of heartbeats.toReversed()) {
    if (beat.health !== last.health) break
    since = beat
  }
  const start = since === heartbeats[0] ? 'at least ' : ''
  const rounds = heartbeats.length === 1 ? 'The last round' : `Last ${heartbeats.length} rounds`
  return `${rounds}: ${sentence}. ${filtered ? answerState[last.health] : needWord[last.health]} for ${start}${formatSpan(now - since.at)}`
}
