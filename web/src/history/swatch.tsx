import type { ReactNode } from 'react'
import type { SpanView } from '../contract.ts'
import { dashes } from './paint.ts'
import type { Stroke } from './picture.ts'

/** A line as it is drawn: its colour and its dashes. */
export const LineSwatch = ({ stroke }: { stroke: Stroke }): ReactNode => (
  <svg className={`swatch is-${stroke}`} viewBox="0 0 26 8" width="26" height="8" aria-hidden="true">
    <path d="M0 4h26" strokeDasharray={dashes[stroke].join(' ')} />
  </svg>
)

const marks: Readonly<Record<SpanView['kind'], ReactNode>> = {
  repaired: <path d="M-2 14 12 0M5 16 21 0M12 16 28 2" />,
  pulled: <path d="M3 5h2M9 5h2M15 5h2M3 10h2M9 10h2M15 10h2" className="dots" />,
  lost: <path d="M-2 14 12 0M5 16 21 0M12 16 28 2M22 14 8 0M15 16-1 0M8 16-8 2" />,
  simulated: null,
}

/** A band as it is drawn. */
export const SpanSwatch = ({ kind }: { kind: SpanView['kind'] }): ReactNode => (
  <svg className={`swatch span-swatch is-${kind}`} viewBox="0 0 20 14" width="20" height="14" aria-hidden="true">
    <rect width="20" height="14" />
    {marks[kind]}
    <path d="M0 1h20" className="edge" />
  </svg>
)
