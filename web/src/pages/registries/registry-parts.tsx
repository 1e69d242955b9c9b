import { IconAlertTriangle, IconLockOpen } from '@tabler/icons-react'
import type { ReactNode } from 'react'
import { Missing } from '../../components/text.tsx'
import type { RegistryDetailView, RegistryView } from '../../contract.ts'
import { useAtTime } from '../../live/hooks.ts'
import { formatStretch } from '../../model/format.ts'
import { availabilityText, formatMs, nextStep, slotsOf, sparkPath, sparkSize, sparkText } from './registry-model.ts'

/** Response times of the last measurements as a small line, with the newest beside it. */
export function ResponseCell({ registry }: { registry: RegistryView }): ReactNode {
  const { responseMs, available, recent } = registry
  const text = sparkText(recent)
  const { line, gaps } = sparkPath(recent)
  const { width, height } = sparkSize
  return (
    <span className="response-cell">
      <svg
        className="spark"
        width={width}
        height={height}
        viewBox={`0 0 ${width} ${height}`}
        role="img"
        aria-label={text}
        data-tip={text}
      >
        <path className="spark-line" d={line} />
        {gaps.map((x) => (
          <path key={x} className="spark-gap" d={`M${x} ${height - 1}v-5`} />
        ))}
      </svg>
      <span className="response-value">
        {responseMs === null ? (
          <Missing why={available === null ? 'it was not checked yet' : 'it did not answer'} />
        ) : (
          formatMs(responseMs)
        )}
      </span>
    </span>
  )
}

/** What must be known of how it is asked. */
export function SafetyTags({ registry }: { registry: RegistryView }): ReactNode {
  const isPlain = registry.endpoint.startsWith('http:')
  if (!isPlain && !registry.skipTlsVerify) return null
  return isPlain ? (
    <span className="tag is-warning" data-tip="By choice. Anyone in between can read and change everything.">
      <IconLockOpen size={12} aria-hidden="true" /> plain HTTP
    </span>
  ) : (
    <span className="tag is-warning" data-tip="By choice. Anyone in between can read the credentials.">
      <IconLockOpen size={12} aria-hidden="true" /> certificate not verified
    </span>
  )
}

/** What is wrong with it, and what to do about that. */
export function Troubles({ registry }: { registry: RegistryView }): ReactNode {
  const { code, error, warnings, available } = registry
  const problems = [
    ...(available === false ? [{ code, message: error, isError: true }] : []),
    ...warnings.map((warning) => ({ ...warning, isError: false })),
  ]
  return problems.map(({ code, message, isError }) => (
    <div className={`notice is-${isError ? 'unhealthy' : 'degraded'}`} key={`${code} ${message}`}>
      <IconAlertTriangle size={18} aria-hidden="true" />
      <div>
        <p>
          <b>{isError ? 'Not available.' : 'Noticed.'}</b> {sentence(message)} <code>{code}</code>
        </p>
        {nextStep(code) !== '' && <p className="next-step">{nextStep(code)}</p>}
      </div>
    </div>
  ))
}

function sentence(text: string): string {
  const begun = `${text.charAt(0).toUpperCase()}${text.slice(1)}`
  return /[.!?…]$/.test(begun) ? begun : `${begun}.`
}

const barWidth = 5
const stripHeight = 30

/** The last 24 hours in quarters of an hour; worse is taller, so that it reads without colour. */
export function AvailabilityStrip({ registry }: { registry: RegistryDetailView }): ReactNode {
  const { measurements, intervalMs } = registry
  const now = useAtTime((time) => Math.floor(time / 60_000) * 60_000)
  const slots = slotsOf(measurements, now)
  const text = availabilityText(measurements, intervalMs, now)
  return (
    <div className="strip">
      <svg
        className="availability"
        viewBox={`0 0 ${slots.length * barWidth} ${stripHeight}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={text}
      >
        {slots.map(({ from, to, probes, failed }, index) => {
          const kind = probes === 0 ? 'none' : failed === 0 ? 'up' : failed === probes ? 'down' : 'partly'
          const height = { none: 3, up: 14, partly: 22, down: stripHeight }[kind]
          const tip = `${formatStretch(from, to)}: ${probes === 0 ? 'not measured' : failed === 0 ? 'available' : `${failed} of ${probes} measurements failed`}`
          return (
            <rect
              key={from}
              className={`is-${kind}`}
              x={index * barWidth}
              y={stripHeight - height}
              width={barWidth - 1}
              height={height}
              data-tip={tip}
            />
          )
        })}
      </svg>
      <p className="strip-ends" aria-hidden="true">
        <span>24 h ago</span>
        <span>now</span>
      </p>
      <p className="strip-text">{text}</p>
    </div>
  )
}
