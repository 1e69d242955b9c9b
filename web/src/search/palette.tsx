import guides from 'virtual:guides'
import { IconSearch } from '@tabler/icons-react'
import { type KeyboardEvent, type ReactNode, useEffect, useId, useMemo, useState } from 'react'
import { Dialog } from '../components/dialog.tsx'
import { HealthMark } from '../components/health.tsx'
import { Name } from '../components/name.tsx'
import { ApiProblem, type SearchHit } from '../contract.ts'
import { useClusters, useHub } from '../live/hooks.ts'
import { useRegistries } from '../live/use-registries.ts'
import { clusterName, type Need, needWord } from '../model/cluster.ts'
import { termText } from '../model/filter.ts'
import { formatSpan } from '../model/format.ts'
import { accessPath, clusterPath, guidePath, navigate, registriesPath, typeEditorPath, typesPath } from '../router.tsx'
import { useSession } from '../session.ts'
import { useTypesSeen } from '../types-seen.ts'
import { hitKey, localHits, mergeHits, needOfHit, pastOfHit } from './local.ts'
import { type Fit, fitOf } from './things.ts'
import { viewHits } from './views.ts'

interface Choice {
  readonly key: string
  readonly hit?: SearchHit
  readonly need?: Need
  readonly title: string
  readonly detail: string
  /** what it is: a word at the end of its line */
  readonly kind: string
  readonly run: () => void
}

/** A page that is found by more than its title. */
interface PageChoice extends Choice {
  readonly names?: readonly string[]
  /** there are too many of its sort to list them before anything is typed */
  readonly isOneOfMany?: boolean
}

interface PaletteProps {
  readonly onClose: () => void
  readonly onHelp: () => void
}

/** Search as you type: clusters at once from what is here, everything else from the hub as it answers. */
export function Palette({ onClose, onHelp }: PaletteProps): ReactNode {
  const [text, setText] = useState('')
  const [place, setPlace] = useState(0)
  const list = useId()
  const { hits, note, asking } = useHits(text)
  const clusters = useClusters()
  const { store } = useHub()
  const administrator = useSession()?.user?.administrator === true
  const types = useTypesSeen()
  const { registries } = useRegistries()
  const choices = useMemo(() => {
    const go = (to: string) => () => {
      onClose()
      navigate(to)
    }
    const now = store.clock.now()
    const asOf = (hit: SearchHit): string => {
      const at = pastOfHit(hit, clusters.get(hit.cluster), now)
      return at === null ? '' : `, as of ${formatSpan(now - at)} ago`
    }
    const nameOf = (name: string) => clusterName(clusters.get(name) ?? { name, displayName: '' })
    const found = hits.map(
      (hit): Choice => ({
        key: hitKey(hit),
        hit,
        need: needOfHit(hit, clusters.get(hit.cluster), now),
        title: hit.kind === 'cluster' ? nameOf(hit.cluster) : hit.name,
        detail:
          hit.kind === 'cluster'
            ? besides(hit.detail, clusters.get(hit.cluster)?.displayName)
            : [`on ${nameOf(hit.cluster)}${asOf(hit)}`, hit.detail].filter(Boolean).join(' · '),
        kind: hit.type ?? hit.kind,
        run: go(pathOf(hit)),
      }),
    )
    const views = viewHits([...clusters.values()], text, now).map(
      (view): Choice =>
        view.kind === 'tab'
          ? {
              key: `tab ${view.cluster} ${view.tab}`,
              title: `${nameOf(view.cluster)}: ${view.tab}`,
              detail: '',
              kind: 'page',
              run: go(clusterPath(view.cluster, view.tab)),
            }
          : {
              key: `need ${view.need}`,
              title: `${needWord[view.need]} clusters`,
              detail: view.count,
              kind: 'filter',
              run: go(`/?q=${encodeURIComponent(termText('needs', ':', view.need))}`),
            },
    )
    const pages: PageChoice[] = [
      { key: 'fleet', title: 'Fleet', detail: '', kind: 'page', run: go('/') },
      {
        key: 'needs',
        title: 'Clusters that need attention',
        detail: '',
        kind: 'page',
        run: go(`/?q=${encodeURIComponent('-needs:healthy')}`),
      },
      { key: 'me', title: 'What may I see?', detail: '', kind: 'page', run: go(accessPath('me')) },
      { key: 'why', title: 'Why do I see this, or not?', detail: '', kind: 'page', run: go(accessPath('why')) },
      ...(administrator || types.length > 0
        ? [{ key: 'types', title: 'Collected types', detail: '', kind: 'page', run: go(typesPath()) }]
        : []),
      ...types.map(({ name, title, kind, names, source }) => ({
        key: `type ${name}`,
        title,
        detail: [kind, source === null ? 'built in' : `declared by ${source}`].join(' · '),
        kind: 'type',
        names: [name, title, kind, ...names],
        isOneOfMany: true,
        run: go(typesPath(name)),
      })),
      ...(administrator || (registries?.length ?? 0) > 0
        ? [{ key: 'registries', title: 'Registries', detail: '', kind: 'page', run: go(registriesPath()) }]
        : []),
      ...(registries ?? []).map(({ name, displayName }) => ({
        key: `registry ${name}`,
        title: displayName,
        detail: displayName === name ? '' : name,
        kind: 'registry',
        names: [displayName, name],
        isOneOfMany: true,
        run: go(registriesPath(name)),
      })),
      ...(administrator
        ? [
            {
              key: 'declare',
              title: 'Declare a type (MetricSource editor)',
              detail: '',
              kind: 'page',
              run: go(typeEditorPath()),
            },
          ]
        : []),
      ...(administrator
        ? [{ key: 'policies', title: 'Access policies', detail: '', kind: 'page', run: go(accessPath('policies')) }]
        : []),
      { key: 'guides', title: 'Guides', detail: '', kind: 'page', run: go(guidePath()) },
      ...guides.map(({ name, title }) => ({
        key: `guide ${name}`,
        title,
        detail: '',
        kind: 'guide',
        isOneOfMany: true,
        run: go(guidePath(name)),
      })),
      { key: 'help', title: 'Help: keyboard shortcuts and guides', detail: '', kind: 'action', run: onHelp },
    ]
    const isTyped = text.trim() !== ''
    const fitting: Record<Fit, Choice[]> = { exact: [], start: [], part: [] }
    for (const page of pages) {
      const fit = fitOf({ names: page.names ?? [page.title] }, text)
      if (fit && (isTyped || !page.isOneOfMany)) fitting[fit].push(page)
    }
    const isCluster = ({ hit }: Choice) => hit?.kind === 'cluster'
    return [
      ...fitting.exact,
      ...views,
      ...found.filter(isCluster),
      ...fitting.start,
      ...found.filter((choice) => !isCluster(choice)),
      ...fitting.part,
    ]
  }, [hits, text, clusters, store, administrator, types, registries, onClose, onHelp])
  const at = Math.min(place, choices.length - 1)
  const press = (event: KeyboardEvent) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (by !== undefined) {
      event.preventDefault()
      setPlace((at + by + choices.length) % Math.max(1, choices.length))
    } else if (event.key === 'Enter') {
      event.preventDefault()
      choices[at]?.run()
    }
  }
  useEffect(() => {
    document.getElementById(`${list}-${at}`)?.scrollIntoView({ block: 'nearest' })
  }, [list, at])
  return (
    <Dialog title="Search" quiet onClose={onClose} className="palette">
      <div className="palette-line">
        <IconSearch size={18} aria-hidden="true" />
        <input
          autoFocus
          role="combobox"
          aria-expanded="true"
          aria-controls={list}
          aria-activedescendant={choices.length > 0 ? `${list}-${at}` : undefined}
          aria-label="Search clusters, nodes, namespaces, operators, types, their rows and pages"
          placeholder="Clusters, nodes, namespaces, operators, types, their rows, pages…"
          value={text}
          spellCheck={false}
          autoComplete="off"
          onChange={(event) => {
            setText(event.target.value)
            setPlace(0)
          }}
          onKeyDown={press}
        />
        <kbd>Esc</kbd>
      </div>
      <div role="listbox" id={list} aria-label="Results" className="palette-list">
        {choices.map((choice, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the combobox above is the keyboard's way
          <div
            key={choice.key}
            id={`${list}-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === at}
            className="palette-hit"
            onPointerMove={() => setPlace(index)}
            onClick={choice.run}
          >
            {choice.hit && choice.hit.kind !== 'custom' ? (
              <HealthMark need={choice.need ?? choice.hit.health} bare />
            ) : (
              <span className="palette-blank" />
            )}
            <span className="palette-name">
              <Name text={choice.title} />
            </span>
            <span className="palette-detail">
              <Name text={choice.detail} />
            </span>
            <span className="palette-kind">{choice.kind}</span>
          </div>
        ))}
      </div>
      <p className="palette-note" role="status">
        {note ?? (choices.length > 0 ? '' : asking ? 'Searching…' : `Nothing is found for “${text.trim()}”.`)}
      </p>
    </Dialog>
  )
}

/** What else is known of a cluster: its labels, without the name that is said already. */
const besides = (detail: string, called = ''): string =>
  called !== '' && detail.startsWith(called) ? detail.slice(called.length).trim() : detail

function pathOf({ kind, cluster, name, type = '', namespace = '' }: SearchHit): string {
  switch (kind) {
    case 'cluster':
      return clusterPath(cluster)
    case 'node':
      return clusterPath(cluster, 'nodes', name)
    case 'namespace':
      return `${clusterPath(cluster, 'deployments')}?q=${encodeURIComponent(termText('namespace', ':', name))}`
    case 'operator':
      return `${clusterPath(cluster, 'operators')}?q=${encodeURIComponent(termText('displayName', '~', name))}`
    case 'custom':
      return `${clusterPath(cluster, 'types', type)}?row=${encodeURIComponent(namespace === '' ? name : `${namespace}/${name}`)}`
  }
}

const pauseMs = 90
/** Of what the hub finds; more of it is told, not shown. */
const shownAtMost = 30

const moreNote = `These are the best ${shownAtMost}; there are more. Another word finds fewer.`

const nothingFound = { text: '', hits: [] }

/** `asking`: the hub has not answered for this text yet. */
function useHits(text: string): { hits: readonly SearchHit[]; note: string | null; asking: boolean } {
  const { client } = useHub()
  const clusters = useClusters()
  const near = useMemo(() => localHits(clusters.values(), text, 6), [clusters, text])
  const [far, setFar] = useState<{ text: string; hits: readonly SearchHit[]; note: string | null }>({
    text: '',
    hits: [],
    note: null,
  })
  const asked = text.trim()
  useEffect(() => {
    if (asked === '') return
    const asking = new AbortController()
    const timer = setTimeout(() => {
      client.search(asked, { limit: shownAtMost + 1 }, asking.signal).then(
        ({ items }) => {
          const note = items.length > shownAtMost ? moreNote : null
          setFar({ text: asked, hits: items.slice(0, shownAtMost), note })
        },
        (cause: unknown) => {
          if (asking.signal.aborted) return
          const why = cause instanceof ApiProblem ? cause.message : String(cause)
          setFar({ text: asked, hits: [], note: `Only clusters are searched: ${why}` })
        },
      )
    }, pauseMs)
    return () => {
      clearTimeout(timer)
      asking.abort()
    }
  }, [client, asked])
  return {
    hits: useMemo(() => mergeHits(near, asked === '' ? nothingFound : far, asked), [near, far, asked]),
    note: far.text === asked ? far.note : null,
    asking: far.text !== asked,
  }
}
