import '../../styles/types.css' // of the manifest
import './registries.css'
import { IconPackageOff } from '@tabler/icons-react'
import { type ReactNode, Suspense, useMemo } from 'react'
import { CopyButton } from '../../components/copy-button.tsx'
import { HealthMark } from '../../components/health.tsx'
import { lazyView } from '../../components/lazy-view.ts'
import { Name } from '../../components/name.tsx'
import { NotUpdated } from '../../components/not-updated.tsx'
import { type Column, ResourceTable } from '../../components/resource-table.tsx'
import { RowLink } from '../../components/row-link.tsx'
import { Empty, Failure, Skeleton } from '../../components/states.tsx'
import { Age, Flash, Missing } from '../../components/text.tsx'
import type { RegistryView } from '../../contract.ts'
import { useRegistries } from '../../live/use-registries.ts'
import { needWord } from '../../model/cluster.ts'
import { accessPath, Link, registriesPath } from '../../router.tsx'
import { useSession } from '../../session.ts'
import { PageHeading } from '../../shell/page-heading.tsx'
import { example, needOf, repositoriesText, severityOf, whyNoCount } from './registry-model.ts'
import { ResponseCell, SafetyTags } from './registry-parts.tsx'

// Charts come with it: the list does without them.
const RegistryPage = lazyView(async () => (await import('./registry-page.tsx')).RegistryPage)

/** Container registries: all that may be seen, or one. */
export function RegistriesPage({ name }: { name: string | null }): ReactNode {
  if (name === null) return <RegistryList />
  return (
    <Suspense fallback={<Skeleton label="Loading the registry" />}>
      <RegistryPage key={name} name={name} />
    </Suspense>
  )
}

const columns: readonly Column<RegistryView>[] = [
  {
    id: 'name',
    header: 'Registry',
    value: ({ name }) => name,
    exports: [
      { id: 'registry', header: 'Registry', value: ({ name }) => name },
      { id: 'displayName', header: 'Display name', value: ({ displayName }) => displayName || null, absence: 'none' },
    ],
    cell: (row) => (
      <span className="name-cell">
        <RowLink to={registriesPath(row.name)}>{row.displayName}</RowLink>
        <span className="sub name-line">
          <Name text={row.endpoint.replace(/^https:\/\//, '')} className="mono" />
          &nbsp;
          <SafetyTags registry={row} />
        </span>
      </span>
    ),
  },
  {
    id: 'health',
    header: 'Health',
    width: 130,
    value: (row) => needWord[needOf(row)],
    order: severityOf,
    cell: (row) => (
      <span {...(row.message && { 'data-tip': row.message })}>
        <HealthMark need={needOf(row)} />
      </span>
    ),
  },
  {
    id: 'response',
    header: 'Response time',
    width: 180,
    align: 'end',
    kind: 'number',
    unit: 'ms',
    descendingFirst: true,
    value: ({ responseMs }) => responseMs,
    cell: (row) => <ResponseCell registry={row} />,
  },
  {
    id: 'repositories',
    header: 'Repositories',
    width: 120,
    align: 'end',
    kind: 'number',
    descendingFirst: true,
    value: ({ repositoryCount }) => repositoryCount,
    cell: (row) => {
      const text = repositoriesText(row)
      return text === null ? (
        <Missing why={whyNoCount(row)} />
      ) : (
        <Flash value={text}>
          <span {...(row.catalogTruncated && { 'data-tip': 'There are more than were counted' })}>{text}</span>
        </Flash>
      )
    },
  },
  {
    id: 'version',
    header: 'API version',
    width: 130,
    value: ({ version }) => version || null,
    cell: ({ version }) =>
      version === '' ? <Missing why="the registry does not say" /> : <span className="mono">{version}</span>,
  },
  { id: 'type', header: 'Type', width: 110, value: ({ type }) => type },
  {
    id: 'checked',
    header: 'Checked',
    width: 110,
    align: 'end',
    kind: 'time',
    value: ({ checkedAt }) => checkedAt,
    cell: ({ checkedAt }) =>
      checkedAt === null ? <Missing why="it was not checked yet" /> : <Age at={checkedAt} suffix=" ago" />,
  },
  { id: 'endpoint', header: 'Endpoint', width: 260, extra: true, value: ({ endpoint }) => endpoint },
  { id: 'message', header: 'Message', width: 420, extra: true, value: ({ message }) => message },
]

const keyOf = ({ name }: RegistryView) => name
const labelsOf = ({ labels }: RegistryView) => labels
const wordsOf = ({ name, displayName, endpoint, type, message }: RegistryView) =>
  `${name} ${displayName} ${endpoint} ${type} ${message}`
const isDim = ({ stale }: RegistryView) => stale
const fields = {
  available: {
    kind: 'text' as const,
    read: ({ available }: RegistryView) => (available === null ? null : String(available)),
  },
  code: { kind: 'text' as const, read: ({ code }: RegistryView) => code },
}

function RegistryList(): ReactNode {
  const { registries, problem, again } = useRegistries()
  const administrator = useSession()?.user?.administrator === true
  const rows = useMemo(() => new Map((registries ?? []).map((registry) => [registry.name, registry])), [registries])
  return (
    <>
      <PageHeading title="Registries">Registries</PageHeading>
      {registries === null ? (
        problem === null ? (
          <Skeleton label="Loading the registries" />
        ) : (
          <Failure problem={problem} onRetry={again} title="The registries could not be loaded" />
        )
      ) : (
        <>
          <NotUpdated problem={problem} onRetry={again} />
          <ResourceTable
            caption="Registries"
            id="registries"
            noun={rows.size === 1 ? 'registry' : 'registries'}
            rows={rows}
            columns={columns}
            fields={fields}
            labels={labelsOf}
            words={wordsOf}
            rowKey={keyOf}
            dim={isDim}
            sort="health"
            rowHeight={48}
            example="health:* response>1000 *=*"
            empty={administrator ? <NoRegistries /> : <NothingShared />}
          />
        </>
      )}
    </>
  )
}

const NothingShared = (): ReactNode => (
  <Empty title="No registry is shared with you" icon={<IconPackageOff size={30} aria-hidden="true" />}>
    <p>Either this hub watches none, or your access reaches none of them. Whoever runs this hub can change that.</p>
    <Link to={accessPath('me')} className="button">
      What may I see?
    </Link>
  </Empty>
)

const NoRegistries = (): ReactNode => (
  <Empty title="No registry is watched yet" icon={<IconPackageOff size={30} aria-hidden="true" />}>
    <p>
      A RegistryConnection names a container registry: whether it answers, how fast, and how many repositories it holds
      is then shown here. Anything that speaks the Docker Registry v2 API will do. Apply this with your own address:
    </p>
    {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
    <pre className="manifest-example" tabIndex={0}>
      {example}
    </pre>
    <p className="state-ways">
      <CopyButton text={example} />
    </p>
  </Empty>
)
