import { IconX } from '@tabler/icons-react'
import { type ReactNode, useId, useLayoutEffect, useRef } from 'react'
import { keepFocus } from './keep-focus.ts'

interface DialogProps {
  readonly title: ReactNode
  readonly onClose: () => void
  readonly className?: string
  /** the heading is for those who listen only */
  readonly quiet?: boolean
  readonly children: ReactNode
}

/** The browser's own modal dialog: it keeps focus inside, closes on Escape and gives focus back. */
export function Dialog({ title, onClose, className = '', quiet = false, children }: DialogProps): ReactNode {
  const element = useRef<HTMLDialogElement>(null)
  const heading = useId()
  useLayoutEffect(() => {
    const dialog = element.current
    dialog?.showModal()
    return () => {
      dialog?.close()
      requestAnimationFrame(keepFocus)
    }
  }, [])
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: a click beside the dialog closes it; by keyboard Escape does
    <dialog
      ref={element}
      className={`dialog ${className}`}
      aria-labelledby={heading}
      onCancel={(event) => {
        event.preventDefault()
        onClose()
      }}
      onClose={() => {
        // A browser may close it without asking first: where nobody has pressed anything since it opened.
        if (!element.current?.open) onClose()
      }}
      onClick={(event) => {
        if (event.target === element.current) onClose()
      }}
    >
      <div className="dialog-body">
        <header className={quiet ? 'vh' : 'dialog-head'}>
          <h2 id={heading}>{title}</h2>
          {!quiet && (
            <button type="button" className="icon-button" onClick={onClose} aria-label="Close">
              <IconX size={18} aria-hidden="true" />
            </button>
          )}
        </header>
        {children}
      </div>
    </dialog>
  )
}
