import { type ReactNode, Suspense, useCallback, useEffect, useRef, useState } from 'react'
import { keepFocus } from './components/keep-focus.ts'
import { lazyView } from './components/lazy-view.ts'
import { Empty, ErrorBoundary, Failure, Refused, Skeleton } from './components/states.tsx'
import { useHub, useLive, useUnheard } from './live/hooks.ts'
import { FleetPage } from './pages/fleet/fleet-page.tsx'
import { kindTabs, Link, parseRoute, type Route, usePlace } from './router.tsx'
import { Palette } from './search/palette.tsx' // at once: whoever opens it is already typing
import { useSession } from './session.ts'
import { Banners } from './shell/banners.tsx'
import { PageHeading } from './shell/page-heading.tsx'
import { useShortcuts } from './shell/shortcuts.ts'
import { TopBar } from './shell/top-bar.tsx'
import { ViewAsBanner } from './shell/view-as-banner.tsx'

const loadClusterPage = () => import('./pages/cluster/cluster-page.tsx')
const loadClusterTypes = () => import('./pages/types/cluster-types.tsx')
const loadTypesPage = () => import('./pages/types/types-page.tsx')
const ClusterPage = lazyView(async () => (await loadClusterPage()).ClusterPage)
const ClusterTypes = lazyView(async () => (await loadClusterTypes()).ClusterTypes)
const AccessPage = lazyView(async () => (await import('./pages/access/access-page.tsx')).AccessPage)
const TypesPage = lazyView(async () => (await loadTypesPage()).TypesPage)
const EditorPage = lazyView(async () => (await import('./pages/types/editor-page.tsx')).EditorPage)
const RegistriesPage = lazyView(async () => (await import('./pages/registries/registries-page.tsx')).RegistriesPage)
const MembersPage = lazyView(async () => (await import('./pages/members/members-page.tsx')).MembersPage)
const EventsPage = lazyView(async () => (await import('./pages/events/events-page.tsx')).EventsPage)
const SignIn = lazyView(async () => (await import('./pages/sign-in.tsx')).SignIn)
const GuidePage = lazyView(async () => (await import('./pages/guide/guide-page.tsx')).GuidePage)
const HelpSheet = lazyView(async () => (await import('./shell/help-sheet.tsx')).HelpSheet)

/** Fetches the scripts of the view at this address beside the first snapshot, not after it. */
export function loadView(route: Route): void {
  const load = (script: () => Promise<unknown>) =>
    script().catch((cause: unknown) => console.warn('a part of the page is not loaded yet', cause))
  // On the fleet it is there before the first click.
  void load(loadClusterPage)
  if (route.page === 'types') void load(loadTypesPage)
  if (route.page === 'cluster' && (route.type !== null || kindTabs.includes(route.tab))) void load(loadClusterTypes)
}

export function App(): ReactNode {
  const { store, session: sessions } = useHub()
  const { path } = usePlace()
  const route = parseRoute(path)
  const [open, setOpen] = useState<'search' | 'help' | null>(null)
  const openSearch = useCallback(() => setOpen('search'), [])
  const openHelp = useCallback(() => setOpen('help'), [])
  const close = useCallback(() => setOpen(null), [])
  useShortcuts({ openSearch, openHelp })
  const link = useLive((live) => live.link)
  const session = useSession()
  const signedOut = session?.authenticated === false
  const epoch = useLive((live) => live.fleet.epoch)
  const unheard = useUnheard()

  // Asked at the start, and again when the connection comes back or is refused: a sign-in may have ended.
  const phase = link.state === 'live' || link.state === 'refused' ? link.state : 'other'
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new phase asks again
  useEffect(() => {
    sessions.ask()
    return () => sessions.stop()
  }, [sessions, phase])

  const shownEpoch = useRef(epoch)
  useEffect(() => {
    if (shownEpoch.current === epoch) return
    shownEpoch.current = epoch
    keepFocus()
  }, [epoch])

  // What happens on the cluster of an address is asked for with the first stream, while the page that shows it is still fetched.
  const cluster = route.page === 'cluster' ? route.name : undefined
  useEffect(() => (cluster === undefined ? undefined : store.follow(cluster)), [store, cluster])

  useEffect(() => {
    if (signedOut) {
      store.leave()
      return
    }
    store.start()
    const look = () => store.setHidden(document.hidden)
    const back = () => store.catchUp()
    document.addEventListener('visibilitychange', look)
    window.addEventListener('online', back)
    return () => {
      document.removeEventListener('visibilitychange', look)
      window.removeEventListener('online', back)
      store.stop()
    }
  }, [store, signedOut])

  return (
    <>
      <a className="skip" href="#main">
        Skip to the content
      </a>
      <TopBar route={route} onSearch={openSearch} onHelp={openHelp} signedOut={signedOut} />
      {route.page === 'guide' ? (
        // A guide says nothing of the fleet: whoever cannot sign in yet may need it most.
        <main id="main" className="page" tabIndex={-1}>
          <ErrorBoundary view="guide">
            <Suspense fallback={<Skeleton label="Loading the page" lines={12} />}>
              <GuidePage name={route.name} />
            </Suspense>
          </ErrorBoundary>
        </main>
      ) : signedOut && session.signIn.length > 0 ? (
        <ErrorBoundary view="sign-in">
          <Suspense fallback={null}>
            <SignIn methods={session.signIn} ended={sessions.hadUser()} />
          </Suspense>
        </ErrorBoundary>
      ) : link.state === 'refused' ? (
        <Refused
          status={link.problem.status}
          problem={link.problem}
          user={session?.user?.username}
          onRetry={() => window.location.reload()}
        />
      ) : signedOut ? (
        <Refused status={401} onRetry={() => window.location.reload()} />
      ) : (
        <>
          <ViewAsBanner />
          <Banners route={route} />
          <main id="main" className={unheard ? 'page is-unheard' : 'page'} tabIndex={-1}>
            <ErrorBoundary key={viewKey(route, epoch)} view={route.page}>
              <Suspense fallback={<Skeleton label="Loading the page" lines={12} />}>
                <View route={route} />
              </Suspense>
            </ErrorBoundary>
          </main>
        </>
      )}
      <Suspense fallback={null}>
        {open === 'search' && !signedOut && <Palette key={epoch} onClose={close} onHelp={openHelp} />}
        {open === 'help' && (
          <ErrorBoundary view="help">
            <HelpSheet onClose={close} />
          </ErrorBoundary>
        )}
      </Suspense>
    </>
  )
}

/** Another epoch is another page: whatever a view kept of the one before goes with it. What is being written stays. */
function viewKey(route: Route, epoch: number): string {
  switch (route.page) {
    case 'cluster':
      return `${route.name} ${epoch}`
    case 'fleet':
    case 'registries':
    case 'members':
    case 'events':
    case 'types':
      return `${route.page} ${epoch}`
    default:
      return route.page
  }
}

function View({ route }: { route: Exclude<Route, { page: 'guide' }> }): ReactNode {
  const { store } = useHub()
  const loaded = useLive((live) => live.fleet.loaded)
  const problem = useLive((live) => live.problem)
  if (route.page === 'missing') {
    return (
      <>
        <PageHeading title="Not found">There is no such page</PageHeading>
        <Empty title={route.path}>
          <Link to="/" className="button">
            To the fleet
          </Link>
        </Empty>
      </>
    )
  }
  if (route.page === 'access') return <AccessPage tab={route.tab} policy={route.policy} />
  if (!loaded && problem?.code === 'policies_unavailable') {
    return (
      <>
        <PageHeading title="Nothing can be shown">Nothing can be shown now</PageHeading>
        <Failure
          problem={problem}
          onRetry={() => store.refresh()}
          title="What you may see cannot be decided while the policies cannot be read"
        >
          <p>Clusters may be there. They are shown again by themselves as soon as the policies can be read.</p>
        </Failure>
      </>
    )
  }
  if (!loaded && problem) {
    return (
      <>
        <PageHeading title="No answer">
          {problem.status === 0 ? 'The hub cannot be reached' : 'The hub cannot answer'}
        </PageHeading>
        <Failure problem={problem} onRetry={() => store.refresh()} title="Nothing could be loaded yet" />
      </>
    )
  }
  if (!loaded) return <Loading />
  switch (route.page) {
    case 'fleet':
      return <FleetPage />
    case 'registries':
      return <RegistriesPage name={route.name} />
    case 'members':
      return <MembersPage name={route.name} />
    case 'events':
      return <EventsPage />
    case 'types':
      return <TypesPage type={route.type} />
    case 'type-editor':
      return <EditorPage isNew={route.isNew} />
    case 'cluster':
      return (
        <ClusterPage
          name={route.name}
          tab={route.tab}
          node={route.node}
          type={route.type}
          object={route.object}
          TypesTab={ClusterTypes}
        />
      )
  }
}

function Loading(): ReactNode {
  return (
    <>
      <PageHeading title="Loading">
        <span className="quiet">Reading the fleet…</span>
      </PageHeading>
      <div className="ledger is-loading" aria-hidden="true">
        {['nodes', 'pods', 'cpu', 'memory', 'versions'].map((cell) => (
          <div className={`ledger-cell is-${cell}`} key={cell}>
            <span className="skeleton-line" />
            <span className="skeleton-line is-tall" />
          </div>
        ))}
      </div>
      <div className="panels" aria-hidden="true">
        <div className="panel" />
        <div className="panel" />
      </div>
      <Skeleton label="Loading the fleet" lines={8} />
    </>
  )
}
