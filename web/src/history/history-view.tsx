import 'uplot/dist/uPlot.min.css'
import './history.css'
import { IconAlertTriangle } from '@tabler/icons-react'
import { type ReactNode, useMemo, useState, useSyncExternalStore } from 'react'
import { download } from '../components/download.ts'
import { NotUpdated } from '../components/not-updated.tsx'
import { Age } from '../components/text.tsx'
import { useMedia } from '../components/use-media.ts'
import type { ClusterView, FillingView } from '../contract.ts'
import { useAtTime, useHub, useLive } from '../live/hooks.ts'
import { isServed } from '../model/cluster.ts'
import { formatSpan, formatStretch } from '../model/format.ts'
import { usePreference } from '../preferences.ts'
import { pushQuery, usePlace } from '../router.tsx'
import { Chart, type ChartMoves } from './chart.tsx'
import { Crosshair, CrosshairContext, restMs } from './crosshair.ts'
import { NoPicture, NoSamples } from './history-states.tsx'
import { HistoryTable } from './history-table.tsx'
import {
  type ChartPlan,
  clusterCharts,
  fillingText,
  isBlank,
  metricsOf,
  nodeCharts,
  type Picture,
  pictureCsv,
  shownCharts,
  spanGroups,
  spanWord,
  usualWay,
} from './picture.ts'
import { type Bounds, clampBounds, formatIso, pan, parseRange, type Range, rangeQuery, stepFor, zoom } from './range.ts'
import { RangeBar, type RangeMoves } from './range-bar.tsx'
import { Readout } from './readout.tsx'
import { SpanSwatch } from './swatch.tsx'
import { type Shown, type Subject, useHistory } from './use-history.ts'

interface HistoryProps {
  /** its interval and the age at which it is stale are those of what is drawn */
  readonly cluster: ClusterView
  readonly node?: string
  /** what a MetricSource keeps of this cluster, instead of the cluster itself */
  readonly of?: { readonly type: string; readonly source: string; readonly plans: readonly ChartPlan[] }
  /** beside other things: one column, the values at the charts */
  readonly compact?: boolean
}

/** What was, of a cluster or of one of its nodes. The range is in the address. */
export function HistoryView({ cluster, node, of, compact = false }: HistoryProps): ReactNode {
  const { store } = useHub()
  const { query } = usePlace()
  const { range, fault } = useMemo(() => parseRange(query), [query])
  const [layout, setLayout] = usePreference('history.layout', 'charts')
  const [crosshair] = useState(() => new Crosshair())
  const narrow = useMedia('(max-width: 1100px)')
  const small = useMedia('(max-width: 700px)')
  const [type, source] = [of?.type, of?.source]
  const subject = useMemo(
    (): Subject => ({
      cluster: cluster.name,
      node: node ?? null,
      ...(type !== undefined && source !== undefined && { type: { name: type, source } }),
    }),
    [cluster.name, node, type, source],
  )
  const plans = of?.plans ?? (node === undefined ? clusterCharts : nodeCharts)
  const metrics = useMemo(() => metricsOf(plans), [plans])
  const spanMs = range.kind === 'live' ? range.preset.ms : range.to - range.from
  const stepMs = stepFor(spanMs, cluster.intervalMs, small ? 180 : compact ? 240 : 360)
  const [shown, again] = useHistory({ subject, metrics, range, stepMs, intervalMs: cluster.intervalMs, crosshair })
  const picture = shown.state === 'here' ? shown.picture : null
  const [hasOlm, hasClusterOperators] = [isServed(cluster, 'operator'), isServed(cluster, 'clusterOperator')]
  const visible = useMemo(
    () => shownCharts(picture, plans, (type) => (type === 'operator' ? hasOlm : hasClusterOperators)),
    [plans, picture, hasOlm, hasClusterOperators],
  )
  const now = () => store.clock.now()
  // Of a fixed range that which is asked for: the picture is of whole steps, and zooming in and out must come back.
  const bounds = (): Bounds =>
    boundsOf(range, range.kind === 'live' && shown.state === 'here' && !shown.pending ? shown.picture.to : now())
  const show = (next: Range) => {
    crosshair.point(null)
    const words = rangeQuery(next)
    // At the narrowest and the widest there is nothing to go back from.
    if (JSON.stringify(words) !== JSON.stringify(rangeQuery(range))) pushQuery(words)
  }
  const fix = (wanted: Bounds) => show({ kind: 'fixed', preset: range.preset, ...clampBounds(wanted, now()) })
  const reset = () => {
    if (range.kind === 'live') return false
    show({ kind: 'live', preset: range.preset })
    return true
  }
  const zoomBy = (factor: number, about: number | null) => {
    const seen = bounds()
    fix(zoom(seen, factor, about ?? (range.kind === 'live' ? seen.to : (seen.from + seen.to) / 2), now()))
  }
  const moves: RangeMoves & ChartMoves = {
    preset: (preset) => show({ kind: 'live', preset }),
    live: (on) => (on ? reset() : fix(bounds())),
    fixed: fix,
    brush: fix,
    reset,
    zoom: (factor, about: number | null = null) => zoomBy(factor, about),
    pan: (direction) => fix(pan(bounds(), direction, now())),
  }
  const name = node ?? (type === undefined ? cluster.name : `${cluster.name}-${type}`)
  const save = (of: Picture) =>
    download(
      `${name}-${formatIso(of.from).replaceAll(':', '')}.csv`,
      'text/csv',
      pictureCsv(of, visible, usualWay(of, cluster)),
    )
  const status = useStatus(crosshair, range, shown, cluster.intervalMs)
  const blank = picture !== null && isBlank(picture)
  return (
    <CrosshairContext value={crosshair}>
      <section className={`history${compact ? ' is-compact' : ''}`} aria-label={`History of ${name}`}>
        {!compact && <h2 className="vh">History</h2>}
        <RangeBar
          range={range}
          bounds={bounds()}
          moves={moves}
          layout={layout === 'table' ? 'table' : 'charts'}
          onLayout={setLayout}
          onDownload={picture && !blank ? () => save(picture) : null}
          status={status}
        />
        {fault !== null && <p className="notice is-degraded">{fault} The usual range is shown.</p>}
        {shown.state === 'waiting' && <Waiting plans={plans} compact={compact || narrow} />}
        {shown.state === 'failed' && (
          <NoPicture
            problem={shown.problem}
            subject={subject}
            onRetry={again}
            onReset={() => pushQuery({ range: null, from: null, to: null })}
          />
        )}
        {shown.state === 'here' && picture && (
          <>
            <Notes shown={shown} cluster={cluster} live={range.kind === 'live'} onRetry={again} />
            {blank ? (
              <NoSamples
                key={picture.filling?.reached}
                subject={subject}
                metrics={metrics.slice(0, 3)}
                isFilling={picture.filling !== null}
                onShow={fix}
              />
            ) : layout === 'table' ? (
              <HistoryTable
                caption={`History of ${name}, ${formatStretch(picture.from, picture.to)}: averages of ${formatSpan(picture.stepMs)}`}
                picture={picture}
                plans={visible}
                way={usualWay(picture, cluster)}
                faded={shown.pending}
              />
            ) : (
              <Charts
                picture={picture}
                plans={visible}
                moves={moves}
                cluster={cluster}
                live={range.kind === 'live'}
                pending={shown.pending}
                brief={compact || narrow}
              />
            )}
          </>
        )}
      </section>
    </CrosshairContext>
  )
}

const boundsOf = (range: Range, now: number): Bounds =>
  range.kind === 'fixed' ? range : { from: now - range.preset.ms, to: now }

function Charts({
  picture,
  plans,
  moves,
  cluster,
  live,
  pending,
  brief,
}: {
  picture: Picture
  plans: readonly ChartPlan[]
  moves: ChartMoves
  cluster: ClusterView
  live: boolean
  pending: boolean
  brief: boolean
}): ReactNode {
  const old = useAtTime((now) => live && isOld(picture, cluster, now))
  const readout = <Readout picture={picture} plans={plans} way={usualWay(picture, cluster)} brief={brief} />
  return (
    <div className={brief ? 'history-body is-brief' : 'history-body'}>
      {brief && readout}
      <div className="charts">
        {plans.map((plan) => (
          <Chart key={plan.id} plan={plan} picture={picture} moves={moves} values={brief} faded={old || pending} />
        ))}
        <p className="fine chart-help">
          Each point is the average of {formatSpan(picture.stepMs)}. Drag to zoom in; double-click or <kbd>Esc</kbd> to
          go back. On a chart: <kbd>←</kbd> <kbd>→</kbd> <kbd>Home</kbd> <kbd>End</kbd> walk, <kbd>+</kbd> <kbd>-</kbd>{' '}
          zoom. While you point, nothing moves; after {formatSpan(restMs)} without a movement, live goes on.
        </p>
      </div>
      {!brief && readout}
    </div>
  )
}

const isOld = (picture: Picture, { staleAfterMs }: ClusterView, now: number): boolean =>
  picture.newest !== null && now - picture.newest > staleAfterMs + picture.stepMs

/** One line of fixed height: what is special about this range. Then what is wrong with it, if anything. */
function Notes({
  shown,
  cluster,
  live,
  onRetry,
}: {
  shown: Extract<Shown, { state: 'here' }>
  cluster: ClusterView
  live: boolean
  onRetry: () => void
}): ReactNode {
  const { picture, problem } = shown
  const groups = useMemo(() => spanGroups(picture), [picture])
  const old = useAtTime((now) => live && isOld(picture, cluster, now))
  return (
    <>
      <ul className="span-legend" aria-label="Stretches that did not come live">
        {picture.filling && <Filling filling={picture.filling} />}
        {groups.length === 0 && !picture.filling && !isBlank(picture) && (
          <li className="quiet">Nothing was repaired, pulled or lost here; where a line breaks, no sample came.</li>
        )}
        {groups.map(({ kind, text, where }) => (
          <li key={kind}>
            <SpanSwatch kind={kind} /> <b>{spanWord[kind]}</b>{' '}
            <span>
              {text}, {where}
            </span>
          </li>
        ))}
        {picture.begins !== null && (
          <li className="quiet">
            Collection began <Age at={picture.begins} suffix=" ago" focusable />; nothing is kept from before.
          </li>
        )}
      </ul>
      <NotUpdated problem={problem} inPlace onRetry={onRetry} />
      {old && picture.newest !== null && !isBlank(picture) && (
        <p className="notice is-degraded">
          <IconAlertTriangle size={18} aria-hidden="true" />
          <span>
            <b>
              As of <Age at={picture.newest} suffix=" ago" focusable />.
            </b>{' '}
            Nothing newer has come since; what is shown is of the past.
          </span>
        </p>
      )}
    </>
  )
}

/** The past grows backwards while somebody looks. */
const Filling = ({ filling }: { filling: FillingView }): ReactNode => (
  <li role="status">
    <SpanSwatch kind="simulated" /> <b>filling the past</b>{' '}
    <span>{fillingText(filling)}, made up for the demonstration</span>
  </li>
)

/** The shape of what comes, of the same height. */
function Waiting({ plans, compact }: { plans: readonly ChartPlan[]; compact: boolean }): ReactNode {
  return (
    <>
      <p className="span-legend quiet" role="status">
        Loading the history…
      </p>
      <div className={compact ? 'history-body is-brief' : 'history-body'}>
        {compact && <div className="readout is-brief" />}
        <div className="charts">
          {plans
            .filter(({ optional }) => !optional)
            .map(({ id, title }) => (
              <figure className="chart" key={id} aria-label={title}>
                <figcaption>
                  <h3>{title}</h3>
                </figcaption>
                <div className="plot skeleton-line" />
              </figure>
            ))}
        </div>
        {!compact && <div className="readout" />}
      </div>
    </>
  )
}

function useStatus(crosshair: Crosshair, range: Range, shown: Shown, intervalMs: number): string {
  const held = useSyncExternalStore(crosshair.subscribe, () => crosshair.current().held)
  const paused = useLive((live) => live.link.state === 'paused')
  if (shown.state === 'here' && shown.pending) return 'loading…'
  if (range.kind === 'fixed') return `${formatStretch(range.from, range.to)}`
  if (paused) return 'paused'
  return held ? `held while you read, ${formatSpan(restMs)} at most` : `every ${formatSpan(intervalMs)}`
}
