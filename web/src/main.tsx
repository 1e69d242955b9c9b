import './styles/tokens.css'
import './styles/base.css'
import './styles/shell.css'
import './styles/table.css'
import './styles/pages.css'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { App } from './app.tsx'
import { installTooltip } from './components/tooltip.ts'
import { createClient } from './contract.ts'
import { type Hub, HubContext } from './live/hooks.ts'
import { LiveStore } from './live/live-store.ts'
import { basePath } from './router.tsx'

const client = createClient({
  baseUrl: basePath,
  fetch: (input, init) => fetch(input, { ...init, credentials: 'same-origin' }),
})
const hub: Hub = { client, store: new LiveStore({ client }) }
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
