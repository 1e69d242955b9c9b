import { IconEye, IconHelp, IconLogout, IconSearch, IconShieldLock, IconUser } from '@tabler/icons-react'
import { type ReactNode, useState } from 'react'
import { ClusterName } from '../components/cluster-name.tsx'
import { Menu } from '../components/menu.tsx'
import { Name } from '../components/name.tsx'
import { useAtTime, useHub } from '../live/hooks.ts'
import { tellSignedOut } from '../live/signed-out.ts'
import { formatSpan } from '../model/format.ts'
import { RequestIndicator } from '../pages/members/request-indicator.tsx'
import { RegistryIndicator, useSeesRegistries } from '../pages/registries/registry-indicator.tsx'
import {
  type AccessTab,
  accessPath,
  clusterPath,
  eventsPath,
  guidePath,
  Link,
  membersPath,
  type Route,
  registriesPath,
  typePath,
  typesPath,
  usePlace,
  withSet,
} from '../router.tsx'
import { methodWord, useSession } from '../session.ts'
import { useSeesMembers, useSeesTypes, useTypesSeen } from '../types-seen.ts'
import { LinkIndicator } from './link-indicator.tsx'
import { ThemeSwitch } from './theme-switch.tsx'

interface TopBarProps {
  readonly route: Route
  readonly onSearch: () => void
  readonly onHelp: () => void
  /** nobody looks: what belongs to a person is not there */
  readonly signedOut: boolean
}

export function TopBar({ route, onSearch, onHelp, signedOut }: TopBarProps): ReactNode {
  const { query } = usePlace()
  return (
    <header className="top">
      <Link to={withSet('/', query)} className="brand" aria-label="ClusterPulse, to the fleet">
        <svg viewBox="0 0 32 32" width="26" height="26" aria-hidden="true">
          <rect width="32" height="32" rx="7" className="brand-ground" />
          <path d="M4 17h6l3-8 5 15 4-10 2 3h4" className="brand-line" />
        </svg>
        <span className="brand-word">ClusterPulse</span>
      </Link>
      {signedOut ? (
        <span className="top-gap" />
      ) : (
        <>
          <Breadcrumbs route={route} />
          <Pages route={route} />
          <button type="button" className="search-button" onClick={onSearch} aria-keyshortcuts="Control+K /">
            <IconSearch size={16} aria-hidden="true" />
            <span className="search-word">Search everything</span>
            <kbd>Ctrl K</kbd>
          </button>
        </>
      )}
      <div className="top-end">
        {!signedOut && <LinkIndicator />}
        <ThemeSwitch />
        <button
          type="button"
          className="icon-button"
          onClick={onHelp}
          aria-label="Help: keyboard and guides"
          data-tip="Help: keyboard and guides"
        >
          <IconHelp size={18} aria-hidden="true" />
        </button>
        <UserMenu />
      </div>
    </header>
  )
}

/** Pages beside the fleet; of some there may be nothing to see. */
function Pages({ route }: { route: Route }): ReactNode {
  const seesTypes = useSeesTypes()
  const seesPods = useTypesSeen().some(({ name }) => name === 'pods')
  const isOnPods = route.page === 'types' && route.type === 'pods'
  const seesRegistries = useSeesRegistries()
  const seesMembers = useSeesMembers()
  const user = useSession()?.user
  const { query } = usePlace()
  const pages = [
    { to: withSet(typesPath('pods'), query), word: 'Pods', isShown: seesPods, isCurrent: isOnPods, after: null },
    {
      to: withSet(typesPath(), query),
      word: 'Types',
      isShown: seesTypes,
      isCurrent: route.page.startsWith('type') && !isOnPods,
      after: null,
    },
    {
      to: withSet(eventsPath, query),
      word: 'Events',
      isShown: seesTypes,
      isCurrent: route.page === 'events',
      after: null,
    },
    {
      to: membersPath(),
      word: 'Members',
      isShown: seesMembers,
      isCurrent: route.page === 'members',
      after: user?.administrator && seesMembers ? <RequestIndicator /> : null,
    },
    {
      to: registriesPath(),
      word: 'Registries',
      isShown: seesRegistries,
      isCurrent: route.page === 'registries',
      after: <RegistryIndicator />,
    },
    {
      to: accessPath(user?.administrator ? 'policies' : 'me'),
      word: 'Access',
      isShown: user != null,
      isCurrent: route.page === 'access',
      after: null,
    },
  ]
  return (
    <nav className="top-pages" aria-label="Pages">
      {pages.map(
        ({ to, word, isShown, isCurrent, after }) =>
          isShown && (
            <Link key={word} to={to} {...(isCurrent && { 'aria-current': 'true' as const })}>
              {word}
              {after}
            </Link>
          ),
      )}
    </nav>
  )
}

interface Crumb {
  readonly word: ReactNode
  /** where it leads; absent: nowhere. The last one is where you are */
  readonly to?: string
}

const fleet: Crumb = { word: 'Fleet', to: '/' }

function crumbsOf(route: Route): readonly Crumb[] {
  const under = (word: string, to: string, name: string | null): readonly Crumb[] => [
    fleet,
    { word, to },
    ...(name === null ? [] : [{ word: <Name text={name} /> }]),
  ]
  switch (route.page) {
    case 'access':
      return [fleet, { word: 'Access' }, ...under(accessWord[route.tab], accessPath(route.tab), route.policy).slice(1)]
    case 'guide':
      return under('Guides', guidePath(), route.name)
    case 'events':
      return [fleet, { word: 'Events' }]
    case 'types':
      return under('Types', typesPath(), route.type)
    case 'type-editor':
      return under('Types', typesPath(), route.isNew ? 'new' : 'edit')
    case 'registries':
      return under('Registries', registriesPath(), route.name)
    case 'members':
      return under('Members', membersPath(), route.name)
    case 'cluster':
      return clusterCrumbs(route)
    default:
      return [fleet]
  }
}

/** Of `namespace/name:Kind` the name. */
const nameIn = (object: string): string => object.replace(/^.*\//, '').replace(/:[^:]*$/, '')

function clusterCrumbs({ name, tab, node, type, object }: Extract<Route, { page: 'cluster' }>): readonly Crumb[] {
  const item = node ?? type ?? object
  return [
    fleet,
    { word: <ClusterName name={name} />, to: clusterPath(name) },
    ...(tab === 'overview' ? [] : [{ word: item === null ? tab.replace('-', ' ') : tab, to: clusterPath(name, tab) }]),
    ...(item === null
      ? []
      : [{ word: <Name text={item} />, ...(type !== null && object !== null && { to: typePath(name, type) }) }]),
    ...(object === null || object === item ? [] : [{ word: <Name text={nameIn(object)} /> }]),
  ]
}

function Breadcrumbs({ route }: { route: Route }): ReactNode {
  const crumbs = crumbsOf(route)
  return (
    <nav className="crumbs" aria-label="Where you are">
      <ol>
        {crumbs.map(({ word, to }, place) => {
          const isLast = place === crumbs.length - 1
          return (
            // biome-ignore lint/suspicious/noArrayIndexKey: the place of a crumb is what it is
            <li key={place} {...(isLast && { 'aria-current': 'page' as const })}>
              {isLast || to === undefined ? <span>{word}</span> : <Link to={to}>{word}</Link>}
            </li>
          )
        })}
      </ol>
    </nav>
  )
}

export const accessWord: Readonly<Record<AccessTab, string>> = {
  policies: 'Policies',
  seen: 'What does … see?',
  try: 'Try a change',
  me: 'My access',
  why: 'Why?',
}

function UserMenu(): ReactNode {
  const session = useSession()
  const { client, store } = useHub()
  const [fault, setFault] = useState('')
  const endsIn = useAtTime((now) => (session?.sessionEndsAt == null ? '' : formatSpan(session.sessionEndsAt - now)))
  const user = session?.user
  if (!user) return null
  const isLocal = user.method === 'local-administrator'
  const leave = async () => {
    let redirect: string | undefined
    try {
      ;({ redirect } = await client.logout())
    } catch (cause) {
      setFault(cause instanceof Error ? cause.message : String(cause))
      return
    }
    tellSignedOut()
    store.leave() // the browser's Back would bring this page as it was left
    // Only a web address of the hub's own configuration is followed.
    if (redirect && /^(https?:\/\/|\/)/i.test(redirect)) window.location.assign(redirect)
    else window.location.reload()
  }
  return (
    <Menu
      label={<IconUser size={18} aria-hidden="true" />}
      className="icon-button"
      title={`Signed in as ${user.username}`}
    >
      <div className="menu-text">
        <p>
          <b>{user.username}</b>
          {user.email && <span className="sub">{user.email}</span>}
        </p>
        <p>{user.groups.length > 0 ? `In ${user.groups.join(', ')}` : 'In no group'}</p>
        {session.actor !== null && (
          <p>
            Really <b>{session.actor}</b>, looking through these eyes
          </p>
        )}
        <p className="fine">
          {user.administrator && session.actor === null && 'Administrator · '}Known by{' '}
          {methodWord[user.method] ?? user.method.replaceAll('-', ' ')}
        </p>
        <p className="fine">
          {endsIn && `Signed in for ${endsIn} more · `}version {session.version}
        </p>
        {fault && (
          <p className="short" role="alert">
            Sign-out failed: {fault}
          </p>
        )}
      </div>
      <Link to={accessPath('me')} className="menu-item">
        <IconEye size={15} aria-hidden="true" /> What may I see?
      </Link>
      {user.administrator && (
        <Link to={accessPath('policies')} className="menu-item">
          <IconShieldLock size={15} aria-hidden="true" /> Access policies
        </Link>
      )}
      {!isLocal && (
        <button type="button" className="menu-item" onClick={() => void leave()}>
          <IconLogout size={15} aria-hidden="true" /> Sign out
        </button>
      )}
    </Menu>
  )
}
