import { clusterName } from '../../model/cluster.ts'
import '../../styles/access.css'
import '../../styles/types.css'
import { IconAlertTriangle, IconDownload, IconEye, IconInfoCircle, IconLock, IconTableOff } from '@tabler/icons-react'
import { type ReactNode, useCallback, useDeferredValue, useEffect, useId, useMemo, useRef, useState } from 'react'
import { CopyButton } from '../../components/copy-button.tsx'
import { download } from '../../components/download.ts'
import { Menu } from '../../components/menu.tsx'
import { Empty, Failure, Skeleton } from '../../components/states.tsx'
import type { ClusterView, SourcesView } from '../../contract.ts'
import { useClusters, useHub } from '../../live/hooks.ts'
import { useFresh } from '../../live/use-fresh.ts'
import { plural } from '../../model/format.ts'
import { textAt } from '../../model/yaml-place.ts'
import { usePreference } from '../../preferences.ts'
import { Link, typeEditorPath, typesPath, usePlace } from '../../router.tsx'
import { useSession } from '../../session.ts'
import { PageHeading } from '../../shell/page-heading.tsx'
import { FindingList, placed } from './finding-list.tsx'
import { FunctionList } from './function-list.tsx'
import { Preview } from './preview.tsx'
import { templates } from './templates.ts'
import { type Trying, useTrial } from './use-trial.ts'
import { type EditorHandle, type Mark, YamlEditor } from './yaml-editor.tsx'

/** What somebody has written survives a look at another page; it lives as long as this tab, and nowhere else. */
const kept = new Map<string, string>()

/** Declares a type with its result beside it. The page stores nothing: what it gives is a file for kubectl. */
export function EditorPage({ isNew }: { isNew: boolean }): ReactNode {
  const session = useSession()
  const { query } = usePlace()
  const source = isNew ? '' : (new URLSearchParams(query).get('source') ?? '')
  const title = isNew ? 'Declare a type' : source || 'Edit a declaration'
  return (
    <>
      <PageHeading title={title}>{title}</PageHeading>
      {session === null ? (
        <Skeleton label="Loading who you are" />
      ) : session.user?.administrator === true ? (
        <WithSources key={source} isNew={isNew} source={source} />
      ) : (
        <Empty title="This page is for administrators" icon={<IconLock size={30} aria-hidden="true" />}>
          <p>A declaration reads from every cluster, whatever policies show of it; so only administrators try one.</p>
          <Link to={typesPath()} className="button">
            To the types
          </Link>
        </Empty>
      )}
    </>
  )
}

function WithSources({ isNew, source }: { isNew: boolean; source: string }): ReactNode {
  const { client } = useHub()
  const ask = useCallback((signal: AbortSignal) => client.sources(signal), [client])
  const [fresh, again] = useFresh(ask)
  if (fresh.state === 'waiting') return <Skeleton label="Loading the declarations" />
  if (fresh.state === 'failed')
    return <Failure problem={fresh.problem} onRetry={again} title="The declarations could not be loaded" />
  const declared = fresh.value.items.find(({ source: { id } }) => id === source)
  if (!isNew && !declared)
    return (
      <Empty title="This declaration is not in force" icon={<IconTableOff size={30} aria-hidden="true" />}>
        <p>
          There is no MetricSource {source}, or it has a mistake that keeps it from coming into force; its status tells
          which.
        </p>
        <p className="state-ways">
          <Link to={typesPath()} className="button">
            To the types
          </Link>
          <Link to={typeEditorPath()} className="button">
            Begin a new one
          </Link>
        </p>
      </Empty>
    )
  return (
    <Editor
      name={source}
      original={declared?.manifest ?? templates[0]?.manifest ?? ''}
      functions={fresh.value.functions}
    />
  )
}

function Editor({
  name,
  original,
  functions,
}: {
  name: string
  original: string
  functions: SourcesView['functions']
}): ReactNode {
  const [text, setText] = useState(() => kept.get(name) ?? original)
  const [cluster, setCluster] = usePreference('types.tryOn', '')
  const clusters = useClusters()
  const chosen = clusters.has(cluster) ? cluster : ''
  const editor = useRef<EditorHandle>(null)
  const status = useId()
  useEffect(() => {
    if (text === original) kept.delete(name)
    else kept.set(name, text)
  }, [name, text, original])
  const [trying, again] = useTrial(text, chosen)
  const settled = useDeferredValue(text)
  const { tried } = trying
  // Findings are of the text that was tried; while another is on its way, marks would stand in wrong places.
  const isCurrent = tried?.manifest === settled
  const findings = useMemo(() => (tried ? placed(tried.manifest, tried.trial.findings) : []), [tried])
  const marks = useMemo(
    (): readonly Mark[] =>
      isCurrent ? findings.flatMap(({ finding: { severity }, span }) => (span ? [{ ...span, severity }] : [])) : [],
    [findings, isCurrent],
  )
  return (
    <div className="editor-page">
      <section className="stack" aria-label="Declaration">
        <EditorTools
          text={text}
          original={name === '' ? null : original}
          onText={(next) => editor.current?.replace({ from: 0, to: text.length }, next)}
        />
        <YamlEditor text={text} onText={setText} marks={marks} describedBy={status} handle={editor} />
        <p className="editor-status" id={status} role="status">
          <Verdict trying={trying} />
        </p>
        {trying.problem && (
          <p className="notice is-degraded">
            <IconAlertTriangle size={18} aria-hidden="true" />
            <span>
              <b>It could not be tried.</b> {trying.problem.message} <code>{trying.problem.code}</code>{' '}
              <button type="button" className="text-button" onClick={again}>
                Retry
              </button>
            </span>
          </p>
        )}
        {findings.length > 0 && (
          <FindingList
            text={tried?.manifest ?? ''}
            findings={findings}
            onGo={(span) => editor.current?.go(span)}
            onReplace={(span, put) => {
              if (isCurrent) editor.current?.replace(span, put)
            }}
          />
        )}
        <Apply text={text} />
        <FunctionList functions={functions} onInsert={(put) => editor.current?.insert(put)} />
      </section>
      <section className="stack" aria-label="Preview">
        <ClusterChooser clusters={clusters} chosen={chosen} onChange={setCluster} onAgain={again} />
        <Outcome trying={trying} current={settled} cluster={chosen} />
      </section>
    </div>
  )
}

function EditorTools({
  text,
  original,
  onText,
}: {
  text: string
  original: string | null
  onText: (text: string) => void
}): ReactNode {
  return (
    <div className="editor-tools">
      <p className="fine">
        <kbd>Tab</kbd> indents, <kbd>Esc</kbd> then <kbd>Tab</kbd> leaves the field. Nothing is stored here.
      </p>
      <div className="toolbar-end">
        {original !== null && (
          <button type="button" className="button" disabled={text === original} onClick={() => onText(original)}>
            As it is in force
          </button>
        )}
        <Menu label="Examples" title="Examples">
          {templates.map(({ title, manifest }) => (
            <button
              key={title}
              type="button"
              className="menu-item"
              popoverTargetAction="hide"
              onClick={(event) => {
                event.currentTarget.closest<HTMLElement>('[popover]')?.hidePopover()
                onText(manifest)
              }}
            >
              {title}
            </button>
          ))}
        </Menu>
      </div>
    </div>
  )
}

function Verdict({ trying: { tried, isBusy } }: { trying: Trying }): ReactNode {
  if (!tried) return isBusy ? 'Checking…' : 'Write a declaration, or begin with an example.'
  const errors = tried.trial.findings.filter(({ severity }) => severity === 'error').length
  const warnings = tried.trial.findings.length - errors
  return (
    <>
      {errors > 0 ? (
        <span className="short is-fault">
          ■ {errors === 1 ? '1 error keeps' : `${plural(errors, 'error')} keep`} it from coming into force
        </span>
      ) : (
        <span className="is-fine">✓ It can come into force</span>
      )}
      {warnings > 0 && <span className="short"> ▲ {plural(warnings, 'warning')}</span>}
      {isBusy && <span className="quiet"> checking…</span>}
    </>
  )
}

function Apply({ text }: { text: string }): ReactNode {
  const name = textAt(text, 'metadata.name').replace(/[^a-z0-9.-]/gi, '')
  const file = `${name || 'metric-source'}.yaml`
  const command = `kubectl apply -f ${file}`
  return (
    <section className="panel apply" aria-labelledby="apply">
      <h2 id="apply">Apply it</h2>
      <p className="fine">Where the hub's declarations live, and with your own rights there:</p>
      <pre>{command}</pre>
      <p className="form-end">
        <button type="button" className="button" onClick={() => download(file, 'application/yaml', text)}>
          <IconDownload size={16} aria-hidden="true" /> Download {file}
        </button>
        <CopyButton text={text} word="Copy the declaration" />
        <CopyButton text={command} word="Copy the command" />
      </p>
    </section>
  )
}

function ClusterChooser({
  clusters,
  chosen,
  onChange,
  onAgain,
}: {
  clusters: ReadonlyMap<string, ClusterView>
  chosen: string
  onChange: (cluster: string) => void
  onAgain: () => void
}): ReactNode {
  const names = useMemo(
    () =>
      [...clusters.values()]
        .sort((a, b) => (a.name < b.name ? -1 : 1))
        .map(({ name, displayName }) => ({ name, displayName })),
    [clusters],
  )
  return (
    <div className="editor-tools">
      <label className="select">
        Read from
        <select value={chosen} onChange={(event) => onChange(event.target.value)}>
          <option value="">no cluster: only check</option>
          {names.map(({ name, displayName }) => (
            <option key={name} value={name}>
              {clusterName({ name, displayName })}
            </option>
          ))}
        </select>
      </label>
      {chosen !== '' && (
        <button type="button" className="button" onClick={onAgain}>
          Read again
        </button>
      )}
    </div>
  )
}

/** Rows where some were read; else why not, and what to do about it. */
function Outcome({ trying, current, cluster }: { trying: Trying; current: string; cluster: string }): ReactNode {
  const { tried, lastRead, isBusy } = trying
  const note = tried && !tried.trial.result ? tried.trial.note : null
  const shown = lastRead?.trial.result && lastRead.trial.source ? lastRead : null
  const hasErrors = tried?.trial.findings.some(({ severity }) => severity === 'error') === true
  if (shown?.trial.result && shown.trial.source && cluster !== '')
    return (
      <>
        {note !== null && !hasErrors && <Note text={note} />}
        <Preview
          result={shown.trial.result}
          source={shown.trial.source}
          cluster={cluster}
          isOld={shown.manifest !== current || shown !== tried}
        />
      </>
    )
  if (cluster === '')
    return (
      <Empty title="No cluster is read yet" icon={<IconEye size={30} aria-hidden="true" />}>
        <p>
          Choose one above: it is read once whenever typing pauses, within the limits of the declaration, and shows
          rows, numbers and how often each field was found.
        </p>
      </Empty>
    )
  if (hasErrors)
    return (
      <Empty title="Nothing was read" icon={<IconAlertTriangle size={30} aria-hidden="true" />}>
        <p>A declaration with errors reads nothing. They are named below the text, each with its place.</p>
      </Empty>
    )
  if (note !== null) return <Note text={note} />
  return isBusy ? <Skeleton label="Reading the cluster" /> : null
}

const Note = ({ text }: { text: string }): ReactNode => (
  <p className="notice">
    <IconInfoCircle size={18} aria-hidden="true" />
    <span>
      <b>Nothing was read.</b> {text}
    </span>
  </p>
)
