import { IconCheck, IconCopy } from '@tabler/icons-react'
import { type ReactNode, useEffect, useState } from 'react'

/** Puts a text on the clipboard and says so. Where the browser keeps pages from it, it says that. */
export function CopyButton({ text, word = 'Copy' }: { text: string; word?: string }): ReactNode {
  const [said, setSaid] = useState<'copied' | 'refused' | null>(null)
  useEffect(() => {
    if (said === null) return
    const timer = setTimeout(() => setSaid(null), 3000)
    return () => clearTimeout(timer)
  }, [said])
  const copy = () => {
    // Only pages that came safely have a clipboard.
    if (!window.isSecureContext) return setSaid(copyOld(text) ? 'copied' : 'refused')
    navigator.clipboard.writeText(text).then(
      () => setSaid('copied'),
      () => setSaid('refused'),
    )
  }
  return (
    <button type="button" className="button" onClick={copy}>
      {said === 'copied' ? <IconCheck size={16} aria-hidden="true" /> : <IconCopy size={16} aria-hidden="true" />}
      <span role="status">{said === 'copied' ? 'Copied' : said === 'refused' ? 'The browser refused' : word}</span>
    </button>
  )
}

function copyOld(text: string): boolean {
  const box = document.createElement('textarea')
  box.value = text
  box.className = 'vh'
  document.body.append(box)
  box.select()
  const done = document.execCommand('copy')
  box.remove()
  return done
}
