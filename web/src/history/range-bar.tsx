import {
  IconCalendar,
  IconChartLine,
  IconChevronLeft,
  IconChevronRight,
  IconDownload,
  IconTable,
  IconZoomIn,
  IconZoomOut,
} from '@tabler/icons-react'
import { type ReactNode, useId, useState } from 'react'
import { Menu } from '../components/menu.tsx'
import { type Bounds, faultOf, type Preset, presets, type Range } from './range.ts'

export interface RangeMoves {
  readonly preset: (preset: Preset) => void
  readonly live: (on: boolean) => void
  readonly fixed: (bounds: Bounds) => void
  readonly zoom: (factor: number) => void
  readonly pan: (direction: -1 | 1) => void
}

interface BarProps {
  readonly range: Range
  readonly bounds: Bounds
  readonly moves: RangeMoves
  readonly layout: 'charts' | 'table'
  readonly onLayout: (layout: 'charts' | 'table') => void
  readonly onDownload: (() => void) | null
  readonly status: string
}

/** Which time, how it moves, and in which shape it is shown. */
export function RangeBar({ range, bounds, moves, layout, onLayout, onDownload, status }: BarProps): ReactNode {
  const isLive = range.kind === 'live'
  return (
    <div className="range-bar">
      <fieldset className="switch words" aria-label="Range">
        {presets.map((preset) => (
          <button
            key={preset.id}
            type="button"
            aria-pressed={isLive && preset.id === range.preset.id}
            onClick={() => moves.preset(preset)}
            aria-label={`The last ${preset.word}`}
          >
            {preset.word}
          </button>
        ))}
      </fieldset>
      <fieldset className="switch" aria-label="Move the range">
        <Move label="Earlier" onClick={() => moves.pan(-1)} icon={<IconChevronLeft size={16} aria-hidden="true" />} />
        <Move label="Zoom in" onClick={() => moves.zoom(0.5)} icon={<IconZoomIn size={16} aria-hidden="true" />} />
        <Move label="Zoom out" onClick={() => moves.zoom(2)} icon={<IconZoomOut size={16} aria-hidden="true" />} />
        <Move
          label="Later"
          onClick={() => moves.pan(1)}
          disabled={isLive}
          icon={<IconChevronRight size={16} aria-hidden="true" />}
        />
      </fieldset>
      <Menu
        title="Custom range"
        label={
          <>
            <IconCalendar size={15} aria-hidden="true" /> <span className="wide-only">Custom</span>
          </>
        }
      >
        <Custom key={customKey(range)} bounds={bounds} onApply={moves.fixed} />
      </Menu>
      <button
        type="button"
        className={`button live-switch${isLive ? ' is-on' : ''}`}
        aria-pressed={isLive}
        onClick={() => moves.live(!isLive)}
        data-tip={isLive ? 'Hold this piece of time' : `Back to the last ${range.preset.word}, moving with time`}
      >
        <span className="live-dot" aria-hidden="true" /> Live
      </button>
      <span className="range-status" role="status">
        {status}
      </span>
      <div className="range-end">
        <fieldset className="switch" aria-label="Shown as">
          <button
            type="button"
            aria-pressed={layout === 'charts'}
            onClick={() => onLayout('charts')}
            aria-label="Charts"
            data-tip="Charts"
          >
            <IconChartLine size={16} aria-hidden="true" />
          </button>
          <button
            type="button"
            aria-pressed={layout === 'table'}
            onClick={() => onLayout('table')}
            aria-label="Table"
            data-tip="The same as a table"
          >
            <IconTable size={16} aria-hidden="true" />
          </button>
        </fieldset>
        <button type="button" className="button" disabled={!onDownload} onClick={() => onDownload?.()}>
          <IconDownload size={15} aria-hidden="true" /> CSV <span className="vh">of what is shown</span>
        </button>
      </div>
    </div>
  )
}

const Move = ({
  label,
  icon,
  onClick,
  disabled = false,
}: {
  label: string
  icon: ReactNode
  onClick: () => void
  disabled?: boolean
}): ReactNode => (
  <button type="button" onClick={onClick} disabled={disabled} aria-label={label} data-tip={label}>
    {icon}
  </button>
)

/** Another range begins anew; one that moves with time leaves alone what is typed. */
const customKey = (range: Range): string => (range.kind === 'live' ? range.preset.id : `${range.from} ${range.to}`)

/** What a field for local date and time takes. */
function localInput(at: number): string {
  const date = new Date(at)
  return new Date(at - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

function Custom({ bounds, onApply }: { bounds: Bounds; onApply: (bounds: Bounds) => void }): ReactNode {
  // What nobody typed into moves with time.
  const [typedFrom, setFrom] = useState<string | null>(null)
  const [typedTo, setTo] = useState<string | null>(null)
  const from = typedFrom ?? localInput(bounds.from)
  const to = typedTo ?? localInput(bounds.to)
  const [fault, setFault] = useState<string | null>(null)
  const id = useId()
  return (
    <form
      className="custom-range"
      onSubmit={(event) => {
        event.preventDefault()
        const asked = { from: new Date(from).getTime(), to: new Date(to).getTime() }
        const wrong = faultOf(asked.from, asked.to)
        setFault(wrong)
        if (wrong !== null) return
        event.currentTarget.closest<HTMLElement>('[popover]')?.hidePopover()
        onApply(asked)
      }}
    >
      <label>
        From <input type="datetime-local" value={from} onChange={(event) => setFrom(event.target.value)} />
      </label>
      <label>
        To <input type="datetime-local" value={to} onChange={(event) => setTo(event.target.value)} />
      </label>
      <p id={id} className="range-fault" role="alert">
        {fault && `This is no range: ${fault}.`}
      </p>
      <button type="submit" className="button is-primary" aria-describedby={id}>
        Show
      </button>
    </form>
  )
}
