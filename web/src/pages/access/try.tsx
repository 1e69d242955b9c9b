import { IconArrowNarrowRight, IconFileImport, IconScale } from '@tabler/icons-react'
import {
  type DragEvent,
  type FormEvent,
  type ReactNode,
  useCallback,
  useEffect,
  useId,
  useMemo,
  useRef,
  useState,
} from 'react'
import { ClusterName } from '../../components/cluster-name.tsx'
import { type Column, ResourceTable } from '../../components/resource-table.tsx'
import { RowLink } from '../../components/row-link.tsx'
import { Empty, Skeleton } from '../../components/states.tsx'
import type { AccessChangeView, ApiProblem, PreviewView } from '../../contract.ts'
import { useDisplayName, useHub } from '../../live/hooks.ts'
import { problemOf } from '../../live/problem.ts'
import { changedTypes, directionOf, splitList, subjectText, typeWord } from '../../model/access.ts'
import { displayNameExport } from '../../model/export-columns.ts'
import { formatCount, plural } from '../../model/format.ts'
import { usePlace, whyPath } from '../../router.tsx'
import { Field } from './field.tsx'
import { DeciderCell, Findings, LevelMark, Refusal } from './parts.tsx'
import { SubjectFields } from './subject-fields.tsx'

/** What somebody has written survives a look at another page; it lives as long as this tab, and nowhere else. */
const kept = { manifest: '', user: '', groups: '' }
const mostBytes = 1_000_000

const example = `apiVersion: clusterpulse.io/v1alpha1
kind: MonitorAccessPolicy
metadata: { name: developers, namespace: clusterpulse }
spec:
  identity: { subjects: { groups: [developers] } }
  access: { effect: Allow }
  scope:
    clusters:
      rules:
        - selector: { matchNames: ['dev-*'] }`

type Outcome =
  | { readonly state: 'none' | 'busy' }
  | { readonly state: 'here'; readonly preview: PreviewView }
  | { readonly state: 'failed'; readonly problem: ApiProblem }

/** A change of policies on trial: what would be different, for whom, over the fleet as it is now. */
export function TryPage(): ReactNode {
  const { client } = useHub()
  const { query } = usePlace()
  const [manifest, setManifest] = useState(kept.manifest)
  const [user, setUser] = useState(kept.user)
  const [groups, setGroups] = useState(kept.groups)
  const [remove, setRemove] = useState(() => new URLSearchParams(query).get('remove') ?? '')
  const [outcome, setOutcome] = useState<Outcome>({ state: 'none' })
  const asking = useRef<AbortController>(undefined)
  Object.assign(kept, { manifest, user, groups })
  useEffect(() => () => asking.current?.abort(), [])

  const nothing = manifest.trim() === '' && splitList(remove).length === 0
  const send = (event?: FormEvent) => {
    event?.preventDefault()
    if (nothing) return
    asking.current?.abort()
    const own = new AbortController()
    asking.current = own
    setOutcome({ state: 'busy' })
    const subject = { username: user.trim(), groups: splitList(groups) }
    const named = subject.username !== '' || subject.groups.length > 0
    client
      .previewPolicies({ manifest, remove: splitList(remove), ...(named && { subjects: [subject] }) }, own.signal)
      .then(
        (preview) => setOutcome({ state: 'here', preview }),
        (cause: unknown) => {
          if (!own.signal.aborted) setOutcome({ state: 'failed', problem: problemOf(cause) })
        },
      )
  }
  return (
    <div className="stack">
      <form className="panel form" onSubmit={send} aria-label="The change">
        <Manifest text={manifest} onText={setManifest} />
        <div className="fields">
          <Remove value={remove} onChange={setRemove} />
          <SubjectFields
            user={user}
            groups={groups}
            onUser={setUser}
            onGroups={setGroups}
            userLabel="Also compare a person"
          />
        </div>
        <p className="form-end">
          <button type="submit" className="button is-primary" disabled={nothing || outcome.state === 'busy'}>
            Show what would change
          </button>
          <span className="fine">Nothing is stored and nobody's access changes.</span>
        </p>
      </form>
      <Result outcome={outcome} onRetry={() => send()} />
    </div>
  )
}

function Remove({ value, onChange }: { value: string; onChange: (value: string) => void }): ReactNode {
  const id = useId()
  return (
    <Field
      id={id}
      label="Take away"
      hint="namespace/name"
      value={value}
      onChange={onChange}
      placeholder="clusterpulse/old-policy"
    />
  )
}

/** YAML by typing, by choosing files or by dropping them. */
function Manifest({ text, onText }: { text: string; onText: (text: string) => void }): ReactNode {
  const id = useId()
  const picker = useRef<HTMLInputElement>(null)
  const [over, setOver] = useState(false)
  const [fault, setFault] = useState('')
  const take = async (files: readonly File[]) => {
    setOver(false)
    setFault('')
    const size = files.reduce((sum, file) => sum + file.size, 0)
    if (size > mostBytes)
      return setFault(`That is ${formatCount(size)} bytes; at most ${formatCount(mostBytes)} can be tried.`)
    try {
      const texts = await Promise.all(files.map((file) => file.text()))
      onText(texts.map((one) => one.trim()).join('\n---\n'))
    } catch (cause) {
      setFault(`The file could not be read: ${problemOf(cause).message}`)
    }
  }
  const drop = (event: DragEvent) => {
    event.preventDefault()
    void take([...event.dataTransfer.files])
  }
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: dropping is a second way; the button is the one for everybody
    <div
      className={`manifest${over ? ' is-over' : ''}`}
      onDragOver={(event) => {
        event.preventDefault()
        setOver(true)
      }}
      onDragLeave={() => setOver(false)}
      onDrop={drop}
    >
      <div className="manifest-head">
        <label className="field-label" htmlFor={id}>
          Policies as YAML or JSON{' '}
          <span className="field-hint">new ones and changed ones; the others stay as they are</span>
        </label>
        <button type="button" className="button" onClick={() => picker.current?.click()}>
          <IconFileImport size={16} aria-hidden="true" /> From files
        </button>
        <input
          ref={picker}
          type="file"
          multiple
          accept=".yaml,.yml,.json"
          hidden
          aria-label="Files with policies"
          onChange={(event) => void take([...(event.target.files ?? [])])}
        />
      </div>
      <textarea
        id={id}
        rows={12}
        value={text}
        placeholder={example}
        spellCheck={false}
        maxLength={mostBytes}
        onChange={(event) => onText(event.target.value)}
        onKeyDown={(event) => {
          if ((event.ctrlKey || event.metaKey) && event.key === 'Enter') event.currentTarget.form?.requestSubmit()
        }}
      />
      {fault && (
        <p role="alert" className="short">
          {fault}
        </p>
      )}
    </div>
  )
}

function Result({ outcome, onRetry }: { outcome: Outcome; onRetry: () => void }): ReactNode {
  switch (outcome.state) {
    case 'none':
      return (
        <Empty title="Nothing tried yet" icon={<IconScale size={30} aria-hidden="true" />}>
          <p>
            Everybody whom a policy names is compared, before and after, over the fleet as it is now. Drop a file on the
            field above, or write into it.
          </p>
        </Empty>
      )
    case 'busy':
      return <Skeleton label="Comparing before and after" />
    case 'failed':
      return outcome.problem.status === 400 ? (
        <Empty title="This cannot be tried">
          <p>{outcome.problem.message}</p>
          <p className="codes">
            <code>{outcome.problem.code}</code>
            {outcome.problem.requestId && <code>request {outcome.problem.requestId}</code>}
          </p>
        </Empty>
      ) : (
        <Refusal problem={outcome.problem} onRetry={onRetry} title="The change could not be tried" />
      )
    case 'here':
      return <Preview preview={outcome.preview} />
  }
}

interface Line extends AccessChangeView {
  readonly key: string
  readonly who: string
}

function Preview({ preview }: { preview: PreviewView }): ReactNode {
  const called = useDisplayName()
  const wordsOf = useCallback(({ who, cluster }: Line) => `${who} ${cluster} ${called(cluster) ?? ''}`, [called])
  const { findings, changes, subjects, unchanged, truncated } = preview
  const rows = useMemo(
    () =>
      new Map(
        changes.map((change): [string, Line] => {
          const who = subjectText(change.subject)
          const key = `${who} ${change.cluster}`
          return [key, { ...change, key, who }]
        }),
      ),
    [changes],
  )
  const columns = useMemo(() => changeColumns(changedTypes(changes)), [changes])
  const errors = findings.some(({ severity }) => severity === 'error')
  return (
    <section className="stack" aria-label="What would change">
      <p className="answer-line" role="status">
        {changes.length === 0
          ? 'Nobody would see anything else'
          : `Something would change for ${formatCount(changes.length)} of ${plural(changes.length + unchanged, 'pair')} of subject and cluster`}{' '}
        ({plural(subjects, 'subject')} compared).
        {truncated && ' There are more subjects than can be compared at once.'}
      </p>
      {findings.length > 0 && (
        <section className="panel" aria-labelledby="found">
          <h2 id="found">
            {errors ? 'What keeps it from coming into force, or is probably not meant' : 'What is probably not meant'}
          </h2>
          <Findings findings={findings} />
        </section>
      )}
      {changes.length > 0 && (
        <ResourceTable
          caption="What would change, by subject and cluster"
          id="changes"
          noun={rows.size === 1 ? 'change' : 'changes'}
          rows={rows}
          columns={columns}
          words={wordsOf}
          rowKey={keyOf}
          alsoExported={[displayNameExport(called)]}
          sort="who"
          rowHeight={46}
          example="change:* cluster:*"
          empty={null}
        />
      )}
    </section>
  )
}

const keyOf = ({ key }: Line) => key
const directionWord = { more: '+ more', less: '− less', mixed: '± other' }

function changeColumns(types: readonly string[]): readonly Column<Line>[] {
  return [
    {
      id: 'who',
      header: 'Who',
      value: ({ who }) => who,
      cell: ({ who, subject, cluster }) => (
        <RowLink to={whyPath({ cluster, as: subject.username, groups: (subject.groups ?? []).join(',') })}>
          {who}
        </RowLink>
      ),
    },
    {
      id: 'cluster',
      header: 'Cluster',
      width: 260,
      value: ({ cluster }) => cluster,
      cell: ({ cluster }) => <ClusterName name={cluster} />,
    },
    {
      id: 'change',
      header: 'Sees',
      width: 92,
      value: (line) => directionOf(line),
      cell: (line) => <span className={`direction is-${directionOf(line)}`}>{directionWord[directionOf(line)]}</span>,
    },
    {
      id: 'level',
      header: 'Access',
      width: 220,
      value: ({ before, after }) => `${before} → ${after}`,
      exports: [
        { id: 'before', header: 'Access before', value: ({ before }) => before },
        { id: 'after', header: 'Access after', value: ({ after }) => after },
      ],
      cell: ({ before, after }) => (
        <span className="step">
          <LevelMark level={before} />
          {before !== after && (
            <>
              <Arrow />
              <LevelMark level={after} />
            </>
          )}
        </span>
      ),
    },
    {
      id: 'policy',
      header: 'Then decided by',
      width: 230,
      value: ({ decidedBy }) => decidedBy?.policy ?? null,
      absence: 'none',
      cell: ({ decidedBy }) => <DeciderCell decider={decidedBy} />,
    },
    ...types.map(
      (type): Column<Line> => ({
        id: type.toLowerCase(),
        header: typeWord(type),
        width: type === 'clusterOperators' ? 140 : 122,
        align: 'end',
        kind: 'number',
        value: ({ counts }) => (counts[type] ? counts[type].after - counts[type].before : null),
        exports: [
          {
            id: `${type}Before`,
            header: `${typeWord(type)} before`,
            value: ({ counts }) => counts[type]?.before ?? null,
          },
          { id: `${type}After`, header: `${typeWord(type)} after`, value: ({ counts }) => counts[type]?.after ?? null },
        ],
        cell: ({ counts }) => <Counted count={counts[type]} />,
      }),
    ),
  ]
}

const Arrow = (): ReactNode => (
  <>
    <IconArrowNarrowRight size={15} aria-hidden="true" />
    <span className="vh"> then </span>
  </>
)

function Counted({ count }: { count: { before: number; after: number } | undefined }): ReactNode {
  if (!count) return <span className="quiet">–</span>
  if (count.before === count.after) return <span className="quiet">{formatCount(count.after)}</span>
  return (
    <span className="step">
      {formatCount(count.before)}
      <Arrow />
      <b>{formatCount(count.after)}</b>
    </span>
  )
}
