import 'uplot/dist/uPlot.min.css'
import '../../history/history.css'
import { type ReactNode, useCallback, useEffect, useMemo, useState } from 'react'
import { HealthMark } from '../../components/health.tsx'
import { Jointed } from '../../components/name.tsx'
import { NotUpdated } from '../../components/not-updated.tsx'
import { Empty, Failure, Skeleton } from '../../components/states.tsx'
import { Age, Missing } from '../../components/text.tsx'
import type { RegistryDetailView } from '../../contract.ts'
import { Chart, type ChartMoves } from '../../history/chart.tsx'
import { Crosshair, CrosshairContext } from '../../history/crosshair.ts'
import { HistoryTable } from '../../history/history-table.tsx'
import { pictureOf } from '../../history/picture.ts'
import { type Bounds, zoom } from '../../history/range.ts'
import { Readout } from '../../history/readout.tsx'
import { useHub } from '../../live/hooks.ts'
import { everyMs } from '../../live/registries-store.ts'
import { useFresh } from '../../live/use-fresh.ts'
import { isResting } from '../../live/use-registries.ts'
import { formatSpan } from '../../model/format.ts'
import { Link, registriesPath } from '../../router.tsx'
import { PageHeading } from '../../shell/page-heading.tsx'
import {
  featureTexts,
  formatMs,
  historyOf,
  needOf,
  repositoriesText,
  responsePlan,
  whyNoCount,
} from './registry-model.ts'
import { AvailabilityStrip, SafetyTags, Troubles } from './registry-parts.tsx'

const dayMs = 24 * 3_600_000

export function RegistryPage({ name }: { name: string }): ReactNode {
  const hub = useHub()
  const { client } = hub
  const ask = useCallback((signal: AbortSignal) => client.registry(name, signal), [client, name])
  const [fresh, again] = useFresh(ask)
  useEffect(() => {
    const look = () => {
      if (!isResting(hub)) again()
    }
    const timer = setInterval(look, everyMs)
    document.addEventListener('visibilitychange', look)
    window.addEventListener('focus', look)
    return () => {
      clearInterval(timer)
      document.removeEventListener('visibilitychange', look)
      window.removeEventListener('focus', look)
    }
  }, [hub, again])
  if (fresh.state === 'here') {
    return (
      <>
        <NotUpdated problem={fresh.problem} onRetry={again} />
        <Detail registry={fresh.value} />
      </>
    )
  }
  return (
    <>
      <PageHeading title={name}>{name}</PageHeading>
      {fresh.state === 'waiting' ? (
        <Skeleton label="Loading the registry" />
      ) : fresh.problem.code === 'registry_not_found' ? (
        <Empty title="There is no such registry, or it is not for you to see">
          <Link to={registriesPath()} className="button">
            To the registries
          </Link>
        </Empty>
      ) : (
        <Failure problem={fresh.problem} onRetry={again} title="The registry could not be loaded" />
      )}
    </>
  )
}

function Detail({ registry }: { registry: RegistryDetailView }): ReactNode {
  return (
    <>
      <PageHeading
        title={registry.displayName}
        after={
          <span className="heading-tags">
            <HealthMark need={needOf(registry)} />
            <SafetyTags registry={registry} />
          </span>
        }
      >
        {registry.displayName}
      </PageHeading>
      {saysMore(registry) && (
        <p className="registry-message">
          <Jointed text={registry.message} />
        </p>
      )}
      <Troubles registry={registry} />
      <div className="registry-panels">
        <section className="panel is-availability" aria-labelledby="registry-availability">
          <h2 id="registry-availability">Availability, last 24 hours</h2>
          <AvailabilityStrip registry={registry} />
        </section>
        <Facts registry={registry} />
        <Holds registry={registry} />
      </div>
      <ResponseTimes registry={registry} />
    </>
  )
}

/** What is wrong is told below, with what to do about it. */
const saysMore = ({ available, warnings, stale }: RegistryDetailView): boolean =>
  stale || available === null || (available && warnings.length === 0)

function Facts({ registry }: { registry: RegistryDetailView }): ReactNode {
  const { endpoint, type, version, responseMs, since, available, checkedAt, intervalMs } = registry
  const features = featureTexts(registry)
  return (
    <section className="panel" aria-labelledby="registry-facts">
      <h2 id="registry-facts">What it is</h2>
      <dl className="pairs">
        <div>
          <dt>Endpoint</dt>
          <dd className="mono">
            <Jointed text={endpoint} />
          </dd>
        </div>
        {type !== '' && (
          <div>
            <dt>Type</dt>
            <dd>{type}</dd>
          </div>
        )}
        <div>
          <dt>API version</dt>
          <dd>
            {version === '' ? (
              <Missing why="the registry does not say" focusable />
            ) : (
              <span className="mono">{version}</span>
            )}
          </dd>
        </div>
        <div>
          <dt>Response time</dt>
          <dd>{responseMs === null ? <Missing why="it did not answer" focusable /> : formatMs(responseMs)}</dd>
        </div>
        {since !== null && (
          <div>
            <dt>{available ? 'Available for' : 'Not available for'}</dt>
            <dd>
              <Age at={since} focusable />
            </dd>
          </div>
        )}
        <div>
          <dt>Checked</dt>
          <dd>
            {checkedAt === null ? (
              <Missing why="it was not checked yet" focusable />
            ) : (
              <>
                <Age at={checkedAt} suffix=" ago" focusable />, every {formatSpan(intervalMs)}
              </>
            )}
          </dd>
        </div>
        {features.length > 0 && (
          <div>
            <dt>Noticed</dt>
            <dd>{features.join(', ')}</dd>
          </div>
        )}
      </dl>
      <Labels labels={registry.labels} />
    </section>
  )
}

function Labels({ labels }: { labels: Readonly<Record<string, string>> }): ReactNode {
  const entries = Object.entries(labels)
  if (entries.length === 0) return null
  return (
    <ul className="tags" aria-label="Labels">
      {entries.map(([key, value]) => (
        <li className="tag" key={key}>
          <Jointed text={`${key}=${value}`} />
        </li>
      ))}
    </ul>
  )
}

function Holds({ registry }: { registry: RegistryDetailView }): ReactNode {
  const text = repositoriesText(registry)
  return (
    <section className="panel" aria-labelledby="registry-holds">
      <h2 id="registry-holds">Repositories</h2>
      {text === null ? (
        <p className="quiet">Not known: {whyNoCount(registry)}.</p>
      ) : (
        <p>
          <b className="holds-count">{text}</b>
          {registry.catalogTruncated && <span className="sub"> counted; there are more</span>}
        </p>
      )}
      {registry.repositories && registry.repositories.length > 0 && (
        <ul className="repositories mono">
          {registry.repositories.map((repository) => (
            <li key={repository}>
              <Jointed text={repository} />
            </li>
          ))}
        </ul>
      )}
      {registry.repositories === null && text !== null && (
        <p className="fine">Names are kept where there are at most 20.</p>
      )}
    </section>
  )
}

function ResponseTimes({ registry }: { registry: RegistryDetailView }): ReactNode {
  const { store } = useHub()
  const { measurements, intervalMs, name, displayName } = registry
  const [crosshair] = useState(() => new Crosshair())
  const [bounds, setBounds] = useState<Bounds | null>(null)
  const [layout, setLayout] = useState<'chart' | 'table'>('chart')
  // Measured at whole seconds; another look at the same ones draws the same picture.
  const picture = useMemo(() => {
    const now = store.clock.now()
    const { from, to } = bounds ?? { from: now - dayMs, to: now }
    return pictureOf(historyOf(measurements, intervalMs, from, to), to)
  }, [store, measurements, intervalMs, bounds])
  const show = (wanted: Bounds | null) => {
    crosshair.point(null)
    setBounds(wanted)
  }
  const moves: ChartMoves = {
    brush: show,
    reset: () => {
      if (bounds === null) return false
      show(null)
      return true
    },
    zoom: (factor, about) => {
      const now = store.clock.now()
      const next = zoom(picture, factor, about ?? (picture.from + picture.to) / 2, now)
      show(next.to - next.from >= dayMs ? null : { from: Math.max(next.from, now - dayMs), to: next.to })
    },
  }
  const plans = [responsePlan]
  return (
    <CrosshairContext value={crosshair}>
      <section className="history is-compact registry-history" aria-label={`Response times of ${displayName}`}>
        <div className="registry-history-bar">
          <Readout picture={picture} plans={plans} way="pull" brief />
          <span className="range-end">
            {bounds && (
              <button type="button" className="button" onClick={() => show(null)}>
                All 24 hours
              </button>
            )}
            <button
              type="button"
              className="button"
              aria-pressed={layout === 'table'}
              onClick={() => setLayout(layout === 'table' ? 'chart' : 'table')}
            >
              As a table
            </button>
          </span>
        </div>
        {layout === 'table' ? (
          <HistoryTable
            caption={`Response times of ${name}`}
            picture={picture}
            plans={plans}
            way="pull"
            faded={false}
          />
        ) : (
          <Chart plan={responsePlan} picture={picture} moves={moves} values faded={registry.stale} />
        )}
      </section>
    </CrosshairContext>
  )
}
