import { IconEye, IconUserQuestion } from '@tabler/icons-react'
import { type FormEvent, type ReactNode, useCallback, useMemo, useState } from 'react'
import { ClusterCell } from '../../components/cluster-name.tsx'
import { type Column, ResourceTable } from '../../components/resource-table.tsx'
import { Empty, Skeleton } from '../../components/states.tsx'
import { Missing } from '../../components/text.tsx'
import type { AccessOfView, SeenView, SubjectView } from '../../contract.ts'
import { useDisplayName, useHub } from '../../live/hooks.ts'
import { problemOf } from '../../live/problem.ts'
import { useAnswer } from '../../live/use-answer.ts'
import { countedTypes, permissionText, splitList, subjectText, typeWord } from '../../model/access.ts'
import { displayNameExport } from '../../model/export-columns.ts'
import { formatCount, plural } from '../../model/format.ts'
import { hrefOf, pushQuery, usePlace, whyPath } from '../../router.tsx'
import { DeciderCell, LevelMark, Refusal, useAgainOnChange } from './parts.tsx'
import { SubjectFields } from './subject-fields.tsx'

/** What a chosen person sees of every cluster, beside what there is. Each question is audited by the hub. */
export function SeenPage(): ReactNode {
  const { query } = usePlace()
  const values = new URLSearchParams(query)
  const [user, groups] = [values.get('user') ?? '', values.get('groups') ?? '']
  return (
    <div className="stack">
      <SubjectForm key={`${user} ${groups}`} user={user} groups={groups} />
      {user === '' && groups === '' ? (
        <Empty title="Choose a person, or groups" icon={<IconUserQuestion size={30} aria-hidden="true" />}>
          <p>
            The groups are those you write here: who somebody is decides their sign-in, not this hub. Asking is written
            into the audit log.
          </p>
        </Empty>
      ) : (
        <Seen key={`${user} ${groups}`} user={user} groups={groups} />
      )}
    </div>
  )
}

function SubjectForm(asked: { user: string; groups: string }): ReactNode {
  const [user, setUser] = useState(asked.user)
  const [groups, setGroups] = useState(asked.groups)
  const send = (event: FormEvent) => {
    event.preventDefault()
    pushQuery({ user: user.trim() || null, groups: splitList(groups).join(',') || null, q: null, sort: null })
  }
  return (
    <form className="panel form" onSubmit={send} aria-label="Whose eyes">
      <div className="fields">
        <SubjectFields user={user} groups={groups} onUser={setUser} onGroups={setGroups} />
      </div>
      <p className="form-end">
        <button type="submit" className="button is-primary">
          What do they see?
        </button>
      </p>
    </form>
  )
}

function Seen({ user, groups }: { user: string; groups: string }): ReactNode {
  const subject = useMemo((): SubjectView => ({ username: user, groups: splitList(groups) }), [user, groups])
  const { client } = useHub()
  const ask = useCallback((signal: AbortSignal) => client.accessOf(subject, signal), [client, subject])
  const [answer, again] = useAnswer(ask)
  useAgainOnChange(again)
  if (answer.state === 'waiting') return <Skeleton label="Loading what they see" />
  if (answer.state === 'failed')
    return <Refusal problem={answer.problem} onRetry={again} title="What they see could not be loaded" />
  return <SeenTable answer={answer.value} subject={subject} />
}

function SeenTable({ answer, subject }: { answer: AccessOfView; subject: SubjectView }): ReactNode {
  const called = useDisplayName()
  const wordsOf = useCallback(({ cluster }: SeenView) => `${cluster} ${called(cluster) ?? ''}`, [called])
  const rows = useMemo(() => new Map(answer.items.map((item) => [item.cluster, item])), [answer])
  const columns = useMemo(() => seenColumns(countedTypes(answer.items), subject), [answer, subject])
  const seen = answer.items.filter(({ level }) => level !== 'none').length
  return (
    <section aria-labelledby="sees">
      <div className="section-head">
        <h2 id="sees" className="section-title">
          {subjectText(subject)} sees {formatCount(seen)} of {plural(answer.items.length, 'cluster')}
        </h2>
        <ViewAs subject={subject} />
      </div>
      <ResourceTable
        caption="What they see, cluster by cluster"
        id="seen"
        noun={rows.size === 1 ? 'cluster' : 'clusters'}
        rows={rows}
        columns={columns}
        words={wordsOf}
        rowKey={nameOf}
        alsoExported={[displayNameExport(called)]}
        fields={fields}
        sort="level"
        rowHeight={46}
        example="level:* nodes<5"
        dim={({ level }) => level === 'none'}
        empty={
          <Empty title="No cluster is connected">
            <p>There is nothing anybody could see.</p>
          </Empty>
        }
      />
    </section>
  )
}

const nameOf = ({ cluster }: SeenView) => cluster
const levels = ['full', 'limited', 'none']
const fields = { level: { kind: 'text' as const, read: ({ level }: SeenView) => level, values: levels } }

function seenColumns(types: readonly string[], { username, groups = [] }: SubjectView): readonly Column<SeenView>[] {
  return [
    {
      id: 'cluster',
      header: 'Cluster',
      value: nameOf,
      cell: ({ cluster }) => (
        <ClusterCell name={cluster} to={whyPath({ cluster, as: username, groups: groups.join(',') })} />
      ),
    },
    {
      id: 'level',
      header: 'Access',
      width: 116,
      value: ({ level }) => level,
      order: ({ level }) => levels.indexOf(level),
      cell: ({ level }) => <LevelMark level={level} />,
    },
    ...types.map(
      (type): Column<SeenView> => ({
        id: type.toLowerCase(),
        header: typeWord(type),
        width: type === 'clusterOperators' ? 140 : 118,
        align: 'end',
        kind: 'number',
        descendingFirst: true,
        value: ({ counts }) => counts[type]?.shown ?? null,
        exports: [
          { id: `${type}Shown`, header: `${typeWord(type)} shown`, value: ({ counts }) => counts[type]?.shown ?? null },
          { id: `${type}Total`, header: `${typeWord(type)} in all`, value: ({ counts }) => counts[type]?.of ?? null },
        ],
        cell: ({ counts }) => <Shown count={counts[type]} />,
      }),
    ),
    {
      id: 'may',
      header: 'They may',
      width: 270,
      extra: true,
      value: ({ permissions }) => permissions,
      exports: [{ id: 'may', header: 'They may', value: ({ permissions }) => permissionText(permissions) }],
      cell: ({ permissions }) => permissionText(permissions),
    },
    {
      id: 'policy',
      header: 'Decided by',
      width: 230,
      value: ({ decidedBy }) => decidedBy?.policy ?? null,
      absence: 'none',
      cell: ({ decidedBy }) => <DeciderCell decider={decidedBy} />,
    },
  ]
}

function Shown({ count }: { count: { shown: number; of: number } | undefined }): ReactNode {
  if (!count) return <Missing why="nothing of it was read on this cluster" />
  return (
    <span>
      {formatCount(count.shown)}
      <span className="of">/{formatCount(count.of)}</span>
    </span>
  )
}

function ViewAs({ subject }: { subject: SubjectView }): ReactNode {
  const { client } = useHub()
  const [state, setState] = useState<{ busy: boolean; fault: string }>({ busy: false, fault: '' })
  const look = () => {
    setState({ busy: true, fault: '' })
    client.viewAs(subject).then(
      // Loaded anew: what the administrator read does not stay beside what the other one sees.
      () => window.location.assign(hrefOf('/')),
      (cause: unknown) => setState({ busy: false, fault: problemOf(cause).message }),
    )
  }
  return (
    <div className="view-as-start">
      <button
        type="button"
        className="button"
        onClick={look}
        disabled={state.busy}
        data-tip="Every page of this browser shows what they see, for 15 minutes, reading only. It is audited."
      >
        <IconEye size={16} aria-hidden="true" /> View as {subject.username || 'them'}
      </button>
      {state.fault && (
        <p role="alert" className="short">
          {state.fault}
        </p>
      )}
    </div>
  )
}
