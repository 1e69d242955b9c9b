import './styles/tokens.css'
import './styles/base.css'
import './styles/shell.css'
import './styles/table.css'
import './styles/pages.css'
import './styles/print.css'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { App, loadView } from './app.tsx'
import { installTooltip } from './components/tooltip.ts'
import { createClient } from './contract.ts'
import { askEarly } from './early.ts'
import { type Hub, HubContext } from './live/hooks.ts'
import { LiveStore } from './live/live-store.ts'
import { SessionStore } from './live/session-store.ts'
import { sharedStreams } from './live/shared-source.ts'
import { onSignedOut } from './live/signed-out.ts'
import { basePath, currentPlace, parseRoute } from './router.tsx'

const asking = createClient({
  baseUrl: basePath,
  fetch: async (input, init) => {
    const response = await fetch(input, init)
    // Whatever was asked: somebody who is not known any more is to sign in again. A wrong password is no such end.
    if (response.status === 401 && hub.session.current()?.authenticated) hub.session.ask()
    return response
  },
})
const { path, query } = currentPlace()
const route = parseRoute(path)
loadView(route)
const client = askEarly(asking, route, new URLSearchParams(query), () => store.current().fleet.epoch === 0)
const openStream = sharedStreams()
const store = new LiveStore({ client, ...(openStream && { openStream }) })
// The stream is opened before anything is drawn. Who shows the cluster follows it soon: until then it lingers.
const release = route.page === 'cluster' ? store.follow(route.name) : undefined
store.start()
release?.()
const session = new SessionStore({
  ask: (signal) => client.session(signal),
  now: () => store.clock.now(),
  onRenewed: () => store.reopen(),
})
for (const use of ['pointerdown', 'keydown'])
  document.addEventListener(use, session.use, { capture: true, passive: true })
const hub: Hub = { client, store, session }
onSignedOut(() => session.leave())
// A page that Back brings from memory shows what somebody saw who may have signed out since.
window.addEventListener('pageshow', ({ persisted }) => {
  if (persisted) window.location.reload()
})
const root = document.getElementById('root')
if (!root) throw new Error('index.html has no #root')
installTooltip()
createRoot(root).render(
  <StrictMode>
    <HubContext value={hub}>
      <App />
    </HubContext>
  </StrictMode>,
)
