/* lock.pml - the FIFO lock: tickets, a queue that gives the order, one item that gives the lock, and fenced writes.
 *
 * Every write to an item is one atomic conditional step; reads of queue and holder are steps of their own. `world` is the
 * network: whatever was ever sent may arrive at any later time, any number of times. Of each client's requests of one kind
 * only the last is kept: those before it expected a state of an item that has passed. A client may stop at every step.
 *
 * Times to live are not trusted: anybody may take any row and any holder for expired at any time. With TRUST only those expire
 * who send no heartbeats any more: who is dead, has given up or has left. Heartbeats of the queue's rows only move expiries
 * which are never trusted, and are not modelled; the holder's is, for others' entering is conditional on it.
 */
#ifndef NC
#define NC 2
#endif
#ifndef MAXT
#define MAXT 3         /* tickets */
#endif
#ifndef MAXF
#define MAXF 4         /* fences */
#endif
#define OUT 0          /* has no place yet */
#define WAITS 1
#define IN 2           /* believes to have the lock */
#define GONE 3         /* released, gave up, lost or died */
#define B(c) (1<<(c))

byte counter;
byte row[MAXT+1];                               /* client + 1 */
byte hf, ho, hx;                                /* holder: fence, client + 1 or free, heartbeat */
byte st[NC], tk[NC], fe[NC];                    /* fe: of the entering that was sent or is held */
byte dn[NC], ef[NC], eo[NC], ex[NC];            /* what draw and entering expect */
byte sent[NC];                                  /* kinds of request in the network */
#define DRAW 1
#define QUEUE 2
#define ENTER 4
#define BEAT 8
#define LEAVE 16       /* of the queue */
#define RELEASE 32
#define WRITE 64       /* what the lock protects, fenced */
#define DEAD(c) (sent[c]&128)                   /* whatever it still does are requests that arrive late */
byte given;                                     /* ghost: tickets that somebody believes to have */
byte maxf, wrote;                               /* ghosts: the highest fence ever given, the fence of the last fenced write */
byte before[NC];                                /* ghost: who was in the queue when this one drew its ticket */
hidden byte x;
hidden byte HELD, FENCE, ORDER, SOLE, FIFO, TICKET;

#define MINE(c) (ho==(c)+1 && hf==fe[c])
#ifdef ANY             /* mutation: to enter, the holder need not be as it was read */
#define ASREAD(c) 1
#else
#define ASREAD(c) (hf==ef[c] && ho==eo[c] && (ho==0 || hx==ex[c]))
#endif
#ifdef TRUST
#define MAY_EXPIRE(d) (st[d]==GONE)
#else
#define MAY_EXPIRE(d) 1
#endif
#ifdef NOFENCE         /* mutation: the protected write is not conditional on the holder */
#define FENCED(c) 1
#else
#define FENCED(c) MINE(c)
#endif
#ifdef ANYRELEASE      /* mutation: a release frees whatever it finds */
#define RELEASES(c) 1
#else
#define RELEASES(c) MINE(c)
#endif

inline do_enter(c) {
  hf=ef[c]+1; ho=c+1; hx=0;
  FENCE = (hf>maxf); assert(FENCE); maxf=hf }
inline do_release(c) {
#ifdef TRUST
  HELD = (ho==c+1 || st[ho-1]!=IN); assert(HELD);
#endif
#ifdef DELETE          /* mutation: the holder's item is deleted, and its fence with it */
  hf=0; ho=0; hx=0
#else
  ho=0; hx=0
#endif
}
inline do_write(c) { ORDER = (fe[c]>=wrote); assert(ORDER); wrote=fe[c] }
inline inside(c) {
  if :: DEAD(c) -> goto gone :: else -> st[c]=IN fi;
#ifdef TRUST
  x=0;
  do
  :: x<NC ->
     SOLE = (x==c || st[x]!=IN); assert(SOLE);
     FIFO = (!(before[c]&B(x)) || st[x]!=WAITS); assert(FIFO); x++
  :: else -> break
  od; x=0
#endif
}
inline queued() {
  x=0;
  do :: x<NC -> before[c]=before[c]|(st[x]==WAITS && row[tk[x]]==x+1 -> B(x) : 0); x++ :: else -> break od; x=0 }

proctype client(byte c) {
  byte t; bit first;
draw:
#ifdef EARLYLOOK       /* mutation: who saw an empty queue before it drew does not look again */
  atomic { first=1; t=1; do :: t<=MAXT -> first=first&&row[t]==0; t++ :: else -> break od; t=0 };
#endif
  atomic { if :: counter>=MAXT -> goto gone :: else -> dn[c]=counter; sent[c]=sent[c]|DRAW fi };
  atomic {
    if
    :: counter==dn[c] -> counter++; tk[c]=counter
#ifdef LOSTDRAW        /* mutation: no answer is taken for a ticket */
    :: tk[c]=dn[c]+1
#else
    :: counter==dn[c] -> counter++; goto draw                    /* no answer: a number is wasted */
    :: goto draw                                                 /* refused, or on its way */
#endif
    fi;
    TICKET = !(given&B(tk[c])); assert(TICKET); given=given|B(tk[c]);
    queued(); st[c]=WAITS };
  sent[c]=sent[c]|QUEUE;
  do
  :: atomic { row[tk[c]]==0 -> row[tk[c]]=c+1 }                  /* once more, if others took it for expired */
#ifndef EARLYLOOK
  :: atomic { row[tk[c]]==c+1 -> first=1; t=1;
       do
       :: t<tk[c] ->
          if
          :: row[t]!=0 && MAY_EXPIRE(row[t]-1) -> row[t]=0       /* self-cleaning */
          :: row[t]!=0 -> first=0
          :: else
          fi; t++
       :: else -> break
       od; t=0 }
#endif
  :: first ->
#ifndef EARLYLOOK
     first=0;
#endif
#ifdef LOWEST          /* mutation: whoever is first in the queue is in */
     atomic { fe[c]=tk[c]; inside(c); break }
#else
     atomic {
       if
       :: ho==c+1 && (sent[c]&ENTER) && hf==fe[c] -> inside(c); break     /* the answer got lost */
       :: hf<MAXF && (ho==0 || (ho!=c+1 && MAY_EXPIRE(ho-1))) ->
          ef[c]=hf; eo[c]=ho; ex[c]=hx; fe[c]=hf+1; sent[c]=sent[c]|ENTER
       :: else -> goto again
       fi };
     atomic {
       if
       :: ASREAD(c) -> do_enter(c); inside(c); break
       :: ASREAD(c) -> do_enter(c)                               /* no answer */
       :: skip                                                   /* refused, or on its way */
       fi };
again: skip
#endif
#if NC==2
  :: atomic { sent[c]=sent[c]|LEAVE|RELEASE; st[c]=GONE; goto leave }/* the wait is over */
#endif
  od;
#if NC==2
  do
  :: atomic { !(sent[c]&BEAT) -> sent[c]=sent[c]|BEAT;
       if
#ifdef REENTER         /* mutation: a heartbeat takes the lock back */
       :: ho=c+1; hf=fe[c]; hx=1
#else
       :: MINE(c) -> hx=1
       :: !MINE(c) -> goto gone                                  /* lost, and never in again */
#endif
       :: skip
       fi }
  :: atomic { sent[c]=sent[c]|WRITE;
       if
       :: FENCED(c) -> do_write(c)
       :: !FENCED(c) -> goto gone
       :: skip
       fi }
  :: break
  od;
#endif
  atomic { st[c]=GONE; sent[c]=sent[c]|LEAVE|RELEASE };
leave:
  atomic { st[c]=GONE; if :: RELEASES(c) && fe[c] && ho -> do_release(c) :: skip fi };
  atomic { if :: row[tk[c]]==c+1 -> row[tk[c]]=0 :: skip fi };
gone: st[c]=GONE
}

#define CAN(cond,what) :: atomic { (cond) -> what }
#if NC>2               /* three: what late draws, heartbeats and writes do, two have shown */
#define ALL(c) \
  CAN((sent[c]&QUEUE) && row[tk[c]]==0, row[tk[c]]=c+1) \
  CAN((sent[c]&ENTER) && ASREAD(c), do_enter(c)) \
  CAN((sent[c]&RELEASE) && fe[c] && RELEASES(c) && ho, do_release(c))
#else
#define ALL(c) \
  CAN((sent[c]&DRAW) && counter==dn[c], counter++) \
  CAN((sent[c]&QUEUE) && row[tk[c]]==0, row[tk[c]]=c+1) \
  CAN((sent[c]&ENTER) && ASREAD(c), do_enter(c)) \
  CAN((sent[c]&BEAT) && MINE(c) && hx==0, hx=1) \
  CAN((sent[c]&LEAVE) && row[tk[c]]==c+1, row[tk[c]]=0) \
  CAN((sent[c]&RELEASE) && fe[c] && RELEASES(c) && ho, do_release(c)) \
  CAN((sent[c]&WRITE) && FENCED(c), do_write(c))
#endif

proctype world() {
end:
  do
  ALL(0)
  ALL(1)
#if NC>2
  ALL(2)
#endif
#if NC==2
  CAN(st[0]!=GONE, sent[0]=sent[0]|128; st[0]=GONE)
#endif
  od
}

init { atomic {
  run client(0); run client(1);
#if NC>2
  run client(2);
#endif
  run world() } }
#ifdef REACH           /* not vacuous: this must be violated */
active proctype reach() { assert(!(REACH)) }
#endif
