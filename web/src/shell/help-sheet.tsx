import type { ReactNode } from 'react'
import { Dialog } from '../components/dialog.tsx'
import { GuideList } from '../pages/guide/guide-page.tsx'
import { usePreference } from '../preferences.ts'
import { shortcuts } from './shortcuts.ts'

export function HelpSheet({ onClose }: { onClose: () => void }): ReactNode {
  const [on, setOn] = usePreference('shortcuts', 'on')
  return (
    <Dialog title="Help" onClose={onClose} className="sheet">
      <h3>Keyboard</h3>
      <dl className="keys">
        {shortcuts.map(([keys, what]) => (
          <div key={keys}>
            <dt>{keys.split(' ').map((key) => (/^(or|and)$/.test(key) ? ` ${key} ` : <kbd key={key}>{key}</kbd>))}</dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <label className="check">
        <input type="checkbox" checked={on === 'on'} onChange={(event) => setOn(event.target.checked ? 'on' : 'off')} />{' '}
        Single keys act (Ctrl K always does)
      </label>
      <h3>Guides of this version, served by this hub</h3>
      <GuideList onFollow={onClose} />
    </Dialog>
  )
}
