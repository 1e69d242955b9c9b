import './members.css'
import { IconCirclePlus } from '@tabler/icons-react'
import { type ReactNode, Suspense, useMemo } from 'react'
import { lazyView } from '../../components/lazy-view.ts'
import { Name } from '../../components/name.tsx'
import { NotUpdated } from '../../components/not-updated.tsx'
import { Warned } from '../../components/push.tsx'
import { type Column, ResourceTable } from '../../components/resource-table.tsx'
import { RowLink } from '../../components/row-link.tsx'
import { EmptySet, SetChoice } from '../../components/set-choice.tsx'
import { Empty, Failure, Skeleton } from '../../components/states.tsx'
import { Age, Flash, Missing } from '../../components/text.tsx'
import { useSetName } from '../../live/use-cluster-set.ts'
import { useMemberDecisions } from '../../live/use-member-decisions.ts'
import { type Listed, useMembers } from '../../live/use-members.ts'
import { hasTwoAgents, type Member, severityOfMember } from '../../model/members.ts'
import { accessPath, guidePath, Link, membersPath } from '../../router.tsx'
import { useSession } from '../../session.ts'
import { PageHeading } from '../../shell/page-heading.tsx'
import { useDecisions } from './decide.tsx'
import { CertificateEnd, MemberStateMark, stateText } from './member-parts.tsx'
import { Requests } from './requests.tsx'

const MemberPage = lazyView(async () => (await import('./member-page.tsx')).MemberPage)

/** Who is a member and who asks to be one; or one of them. */
export function MembersPage({ name }: { name: string | null }): ReactNode {
  if (name === null) return <MemberList />
  return (
    <Suspense fallback={<Skeleton label="Loading the member" />}>
      <MemberPage key={name} name={name} />
    </Suspense>
  )
}

const columns: readonly Column<Member>[] = [
  {
    id: 'name',
    header: 'Member',
    value: ({ name }) => name,
    cell: ({ name }) => <RowLink to={membersPath(name)}>{name}</RowLink>,
  },
  {
    id: 'state',
    header: 'State',
    width: 196,
    value: stateText,
    order: severityOfMember,
    cell: (member) => (
      <Flash value={member.state}>
        <MemberStateMark member={member} />
        {hasTwoAgents(member) && (
          <span className="sub short">
            <Warned />
            two agents
          </span>
        )}
      </Flash>
    ),
  },
  {
    id: 'since',
    header: 'For',
    width: 72,
    align: 'end',
    kind: 'time',
    value: ({ since }) => since,
    cell: ({ since }) => (since === null ? <Missing why="nobody decided about it yet" /> : <Age at={since} />),
  },
  {
    id: 'sets',
    header: 'Sets',
    width: 190,
    least: 88,
    value: ({ sets }) => sets.join(' '),
    cell: ({ sets }) => <Name text={sets.join(', ')} />,
  },
  {
    id: 'version',
    header: 'Kubernetes',
    width: 104,
    value: ({ version }) => version,
    cell: ({ version }) =>
      version === null ? <Missing why="it did not say" /> : <span className="mono">{version}</span>,
  },
  {
    id: 'certificate',
    header: 'Certificate ends',
    width: 132,
    align: 'end',
    kind: 'time',
    value: ({ certificateUntil }) => certificateUntil,
    cell: (member) => <CertificateEnd member={member} />,
  },
  {
    id: 'age',
    header: 'Age',
    width: 66,
    align: 'end',
    kind: 'time',
    value: ({ createdAt }) => createdAt,
    cell: ({ createdAt }) => (createdAt === null ? <Missing why="the hub does not say" /> : <Age at={createdAt} />),
  },
  { id: 'reason', header: 'Reason', width: 230, extra: true, value: ({ reason }) => reason || null, absence: 'none' },
  {
    id: 'message',
    header: 'Message',
    width: 420,
    extra: true,
    value: ({ message }) => message || null,
    absence: 'none',
  },
  {
    id: 'transport',
    header: 'Speaks by',
    width: 130,
    extra: true,
    value: ({ transport }) => transport,
    absence: 'none',
  },
]

const keyOf = ({ name }: Member) => name
const labelsOf = ({ labels }: Member) => labels
const wordsOf = ({ name, sets, reason, message }: Member) => `${name} ${sets.join(' ')} ${reason} ${message}`
const dim: ReadonlySet<Member['state']> = new Set(['lost', 'not joined yet', 'denied', 'revoked'])
const isPast = () => true
const isDim = ({ state }: Member) => dim.has(state)
const fields = {
  set: { kind: 'text' as const, read: ({ sets }: Member) => sets },
  renewBy: { kind: 'time' as const, read: ({ renewBy }: Member) => renewBy },
}

function MemberList(): ReactNode {
  const listed = useMembers()
  const administrator = useSession()?.user?.administrator === true
  const [decisions, again] = useMemberDecisions()
  const { ask, shown } = useDecisions(again)
  return (
    <>
      <PageHeading title="Members">Members</PageHeading>
      {shown}
      {listed.state !== 'off' && <Requests ask={ask} decisions={decisions} again={again} />}
      <List listed={listed} administrator={administrator} />
    </>
  )
}

function List({ listed, administrator }: { listed: Listed<Member>; administrator: boolean }): ReactNode {
  const items = listed.state === 'here' ? listed.items : none
  const set = useSetName()
  const rows = useMemo(
    () => new Map(items.filter(({ sets }) => set === '' || sets.includes(set)).map((member) => [member.name, member])),
    [items, set],
  )
  switch (listed.state) {
    case 'waiting':
      return <Skeleton label="Loading the members" />
    case 'failed':
      return <Failure problem={listed.problem} onRetry={listed.again} title="The members could not be loaded" />
    case 'off':
      return administrator ? <Off /> : <NoneForYou />
    case 'unread':
      return (
        <Empty title="The members are not known yet">
          <p>The hub has not read them: {listed.part.message}. They appear here by themselves.</p>
        </Empty>
      )
    case 'here':
      return (
        <>
          <NotUpdated problem={listed.problem} asOf={listed.asOf} onRetry={listed.again} />
          <ResourceTable
            caption="Members"
            id="members"
            noun={rows.size === 1 ? 'member' : 'members'}
            rows={rows}
            total={set === '' ? listed.total : undefined}
            columns={columns}
            fields={fields}
            labels={labelsOf}
            words={wordsOf}
            rowKey={keyOf}
            dim={listed.asOf === null ? isDim : isPast}
            sort="state"
            rowHeight={44}
            example="state:* set:* *=*"
            controls={<SetChoice members={items} />}
            empty={set !== '' ? <EmptySet name={set} /> : administrator ? <None /> : <NoneForYou />}
          />
        </>
      )
  }
}

const none: readonly Member[] = []

const None = (): ReactNode => (
  <Empty title="No cluster is a member yet" icon={<IconCirclePlus size={30} aria-hidden="true" />}>
    <p>A cluster joins with a token of its own. Print one, and show it on a machine that reaches the cluster:</p>
    <pre>npx clusterpulse connect NAME</pre>
    <p>
      Who asks appears here. The <Link to={guidePath('joining')}>guide</Link> tells the rest.
    </p>
  </Empty>
)

const NoneForYou = (): ReactNode => (
  <Empty title="No member is shown to you">
    <p>Members are seen with their clusters, by whoever may see those.</p>
    <Link to={accessPath('me')} className="button">
      What may I see?
    </Link>
  </Empty>
)

const Off = (): ReactNode => (
  <Empty title="This hub looks after no members">
    <p>
      Clusters are connected to it one by one. The <Link to={guidePath('members')}>guide</Link> says how it takes
      members.
    </p>
  </Empty>
)
