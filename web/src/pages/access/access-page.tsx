import '../../styles/access.css'
import { IconShieldLock } from '@tabler/icons-react'
import type { ReactNode } from 'react'
import { Empty, ErrorBoundary, Skeleton } from '../../components/states.tsx'
import { Tabs } from '../../components/tabs.tsx'
import { useLive } from '../../live/hooks.ts'
import { type AccessTab, accessPath, accessTabs, Link } from '../../router.tsx'
import { useSession } from '../../session.ts'
import { PageHeading } from '../../shell/page-heading.tsx'
import { accessWord } from '../../shell/top-bar.tsx'
import { MePage } from './me.tsx'
import { PoliciesPage } from './policies.tsx'
import { PolicyPage } from './policy-page.tsx'
import { SeenPage } from './seen.tsx'
import { TryPage } from './try.tsx'
import { WhyPage } from './why.tsx'

const own: readonly AccessTab[] = ['me', 'why']
const titles: Readonly<Record<AccessTab, string>> = {
  policies: 'Access policies',
  seen: 'What does somebody see?',
  try: 'Try a change',
  me: 'What may I see?',
  why: 'Why do I see this, or not?',
}

/** Who may see what: for everybody their own picture, for administrators that of all. */
export function AccessPage({ tab, policy }: { tab: AccessTab; policy: string | null }): ReactNode {
  const session = useSession()
  const administrator = session?.user?.administrator === true
  const title = policy ?? titles[tab]
  return (
    <>
      <PageHeading title={title}>{title}</PageHeading>
      <Tabs
        label="Access"
        tabs={accessTabs
          .filter((each) => administrator || own.includes(each))
          .map((each) => ({ to: accessPath(each), word: accessWord[each], isCurrent: each === tab }))}
      />
      <ErrorBoundary key={`${tab} ${policy}`} view={`access ${tab}`}>
        {session === null ? (
          <Skeleton label="Loading who you are" />
        ) : administrator || own.includes(tab) ? (
          <Tab tab={tab} policy={policy} />
        ) : (
          <ForAdministrators actor={session.actor} />
        )}
      </ErrorBoundary>
    </>
  )
}

function Tab({ tab, policy }: { tab: AccessTab; policy: string | null }): ReactNode {
  const epoch = useLive((live) => live.fleet.epoch)
  switch (tab) {
    case 'policies':
      return policy === null ? <PoliciesPage /> : <PolicyPage name={policy} />
    case 'seen':
      return <SeenPage />
    case 'try':
      return <TryPage />
    case 'me':
      return <MePage key={epoch} />
    case 'why':
      return <WhyPage />
  }
}

function ForAdministrators({ actor }: { actor: string | null }): ReactNode {
  return (
    <Empty title="This page is for administrators" icon={<IconShieldLock size={30} aria-hidden="true" />}>
      <p>
        {actor === null
          ? 'Policies tell of other people, so only administrators see them. What you may see yourself, and why, has pages of its own.'
          : 'You are looking through the eyes of somebody who is none. Stop that, above, to come back to it.'}
      </p>
      <p className="state-ways">
        <Link to={accessPath('me')} className="button">
          What may I see?
        </Link>
        <Link to={accessPath('why')} className="button">
          Why do I see this, or not?
        </Link>
      </p>
    </Empty>
  )
}
