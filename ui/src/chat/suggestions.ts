// First orders to try: of the demo model those that it knows, of a real model any words. Pure.
import { BookOpen, Brain, ListChecks, MessageCircleQuestion, Sparkles } from '@lucide/vue'
import type { Component } from 'vue'

export interface Suggestion {
  icon: Component
  text: string
  why: string
}
const DEMO: Suggestion[] = [
  { icon: ListChecks, text: 'tidy the welcome notes', why: 'Reads the notes, then asks before it changes one.' },
  { icon: BookOpen, text: 'summarise the notes', why: 'Reading asks nothing; saving the summary does.' },
  { icon: Brain, text: 'remember that the spare key is under the blue pot', why: 'Keeps a small value for later.' },
  { icon: Sparkles, text: 'what do you remember', why: 'Shows what it kept.' },
]
const REAL: Suggestion[] = [
  { icon: BookOpen, text: 'say in a few lines what the notes are about', why: 'It reads, and changes nothing.' },
  { icon: ListChecks, text: 'what do my notes say is still to be done?', why: 'It looks through all it may read.' },
  { icon: Sparkles, text: 'propose a better order for the notes', why: 'It asks before it changes one.' },
  { icon: MessageCircleQuestion, text: 'what can you do here, and what may you touch?', why: 'It knows its tools and its limits.' },
]

export const suggestionsFor = (model: string): Suggestion[] => (model.startsWith('demo/') ? DEMO : REAL)
