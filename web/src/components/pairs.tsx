import type { ReactNode } from 'react'
import { Jointed } from './name.tsx'
import { Missing } from './text.tsx'

/** Names and values one below the other, such as labels. */
export function Pairs({
  pairs,
  none = 'nothing known',
  mono = false,
}: {
  pairs: Readonly<Record<string, string>>
  none?: string
  mono?: boolean
}): ReactNode {
  const entries = Object.entries(pairs)
  if (entries.length === 0) return <p className="fine">{none}</p>
  return (
    <dl className={`pairs${mono ? ' mono' : ''}`}>
      {entries.map(([name, value]) => (
        <div key={name}>
          <dt>
            <Jointed text={name} />
          </dt>
          <dd>{value === '' ? mono ? '""' : <Missing why="not told" focusable /> : <Jointed text={value} />}</dd>
        </div>
      ))}
    </dl>
  )
}
