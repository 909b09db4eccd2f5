/* timers.pml - timers in buckets: a list says which buckets there are, and owners fire what is due in them.
 *
 * Transactions are strictly serializable: whoever makes one reads in steps of its own, and then ONE atomic step finds all that
 * as it was read and writes, or it starts over. Any answer may be lost: what was applied is taken for failed, and tried again.
 * A setter's own command id tells it that it has set its timer. Cancels and drops are tried again without one.
 *
 * There are two owners at once. Each may die at every step, and another one begins where it was. Time goes on at any time,
 * and whenever anybody looks at a clock it shows that time or one before: clocks lag, and go back. A timer may be set before
 * its time, in its minute and after it.
 *
 * At the end all others are gone, all times have passed, and one owner goes through the buckets once more.
 */
#define B(x) (1<<(x))
#if SCEN==1            /* two timers in one minute */
#define NB 1
#define NT 2
#define MAXTICK 2
hidden byte due[2] = {0,1};           hidden byte bk[2] = {0,0};     hidden byte over[1] = {2};     hidden byte held[1] = {3};
#elif SCEN==2          /* each in a minute of its own */
#define NB 2
#define NT 2
#define MAXTICK 2
hidden byte due[2] = {0,1};           hidden byte bk[2] = {0,1};     hidden byte over[2] = {1,2};   hidden byte held[2] = {1,2};
#elif SCEN==3          /* one */
#define NB 1
#define NT 1
#define MAXTICK 2
hidden byte due[1] = {1};             hidden byte bk[1] = {0};       hidden byte over[1] = {2};     hidden byte held[1] = {1};
#elif SCEN==4          /* what fires sets one in the same minute, which may be over */
#define CHAIN
#define NB 1
#define NT 2
#define MAXTICK 2
hidden byte due[2] = {0,1};           hidden byte bk[2] = {0,0};     hidden byte over[1] = {2};     hidden byte held[1] = {3};
#elif SCEN==5          /* what fires sets one in a minute before its own */
#define CHAIN
#define NB 2
#define NT 2
#define MAXTICK 2
hidden byte due[2] = {1,0};           hidden byte bk[2] = {1,0};     hidden byte over[2] = {1,2};   hidden byte held[2] = {2,1};
#endif
#ifdef CHAIN           /* timer 0, when it fires, sets timer 1 in that transaction */
#define NS 1           /* setters */
#define NEXT(t) ((t)==0)
#define PASSES 2       /* the first may set what the second fires */
#else
#define NS NT
#define NEXT(t) 0
#define PASSES 1
#endif
#ifndef NK
#define NK 1           /* cancellers, of the first timers */
#endif
#ifndef POISON
#define POISON 0       /* those that may fail for good; with any, timer 0's retrier and its operator */
#endif
#if POISON
#define NH 2
#else
#define NH 0
#endif

byte list;                                      /* buckets */
byte row, aside;                                /* timers in their buckets, timers that have failed */
byte slot;                                      /* command ids of timers that are taken */
byte set;                                       /* timers that were set: the command ids of their setters */
byte tick, ended;
byte fired, taken;                              /* ghosts: its effect is there; it was cancelled or dropped */
hidden byte x;
hidden byte LISTED, ONCE, EARLY, TOLD, FIRED;
#ifdef REACH
byte seen;                                      /* ghost */
#define CLOSED 1
#define REOPENED 2
#define TOO_LATE 4     /* a cancel, behind the fire */
#define REFUSED 8      /* a fire, behind another owner's */
#define AGAIN 16       /* a fire that has found its own */
#define RETRIED 32     /* fired from aside */
#define SAW(what) seen=seen|(what)
#else
#define SAW(what) skip
#endif

#ifdef NOLIST          /* mutation: the setter does not validate that the bucket is in the list */
#define LIST_AS(t,l) 1
#else
#define LIST_AS(t,l) ((list&B(bk[t]))==(l))
#endif
#ifdef NOEMPTY         /* mutation: the closer does not validate that nothing is in the bucket */
#define EMPTY(b) 1
#else
#define EMPTY(b) ((row&held[b])==0)
#endif
#ifdef NOROW           /* mutation: who fires does not validate that the timer is there */
#define THERE(t) 1
#else
#define THERE(t) (row&B(t))
#endif
#if defined(NOTAKE) || defined(NOSLOT)
#define SLOT_AS(t,s) 1
#else
#define SLOT_AS(t,s) ((slot&B(t))==(s))
#endif
#ifdef NOCANCEL        /* mutation: a cancel does not validate that what it found is there */
#define FOUND_AS(t,r,a) 1
#else
#define FOUND_AS(t,r,a) ((row&B(t))==(r) && ((r) || (aside&B(t))==(a)))
#endif

#define LEAVE ended++; goto end
inline listed() {
  x=0; LISTED=1;
  do :: x<NB -> LISTED = LISTED && ((row&held[x])==0 || (list&B(x))); x++ :: else -> break od;
  assert(LISTED) }
inline put(t,l) {                               /* l: whether its bucket was in the list */
#ifdef REACH
  if :: !(l) && (seen&CLOSED) -> SAW(REOPENED) :: else fi;
#endif
  row=row|B(t); set=set|B(t); list=((l) -> list : list|B(bk[t])) }
inline give_up(t) { TOLD = !(fired&B(t)); assert(TOLD); taken=taken|B(t) }
inline fire(t,s,l) {                            /* what it does, if its id was free */
  if
  :: (s)==0 ->
     EARLY = (!early && due[t]<=tick); assert(EARLY);
     ONCE = !(fired&B(t)); assert(ONCE);
     TOLD = !(taken&B(t)); assert(TOLD);
     fired=fired|B(t);
     if :: NEXT(t) -> put(1,l) :: else fi
  :: else
  fi;
#if !defined(NOTAKE) && !defined(NOSLOT)
  slot=slot|B(t)
#endif
}

proctype setter(byte t) {
  byte l;
again:
  atomic {
    if
    :: set&B(t) -> LEAVE                                         /* the answer got lost */
    :: !(set&B(t)) -> l=list&B(bk[t])
    :: LEAVE
    fi };
  atomic {
    if
    :: LIST_AS(t,l) -> put(t,l); listed(); l=0; if :: LEAVE :: goto again fi
    :: !LIST_AS(t,l) -> l=0; goto again
    :: l=0; LEAVE
    fi };
end: false
}

proctype canceller(byte t) {
  byte r, a;
again:
  atomic { if :: set&B(t) -> r=row&B(t) :: LEAVE fi };
  atomic { if :: r :: r==0 -> a=aside&B(t) fi };
  atomic {
    if
    :: FOUND_AS(t,r,a) && (r || a) ->
       give_up(t); row=row&~r; aside=aside&~a
    :: FOUND_AS(t,r,a) && !(r || a) ->                           /* false: it has fired or is gone */
       TOLD = ((fired|taken)&B(t)); assert(TOLD);
       if :: fired&B(t) -> SAW(TOO_LATE) :: else fi
    :: !FOUND_AS(t,r,a)                                          /* refused */
    fi;
    r=0; a=0;
    if :: LEAVE :: goto again fi };
end: false
}

#define FORGET up=0; buckets=0; timers=0; b=0; t=0; s=0; l=0; early=0; again=0
#define DIES :: !last -> FORGET; goto pass
#ifdef REACH
#define AGAIN_IS(x) again=x
#else
#define AGAIN_IS(x) skip
#endif
#define QUIET (o==0 && tick==MAXTICK && ended==NS+NK+NH+1)
proctype owner(byte o) {
  byte up, buckets, timers, b, t, s, l, last; bit early, again;
pass:
  atomic {
    if
    :: last==PASSES ->
       FIRED = (row==0 && list==0 && (fired|taken|aside)==set && !(fired&taken) && !((fired|taken)&aside));
       assert(FIRED); LEAVE
    :: last<PASSES && QUIET -> last++
    :: !QUIET
    :: o!=0 -> LEAVE
    fi;
    do :: up<tick -> up++ :: up==tick || !last -> break od;      /* its clock */
    buckets=list };
bucket:
  atomic {
    do :: b<NB && !(buckets&B(b)) -> b++ :: else -> break od;
    if :: b==NB -> FORGET; goto pass :: else -> buckets=buckets&~B(b); timers=row&held[b] fi };
timer:
  atomic {
    do :: t<NT && !(timers&B(t)) -> t++ :: else -> break od;
    if
    :: t==NT -> t=0; timers=0; goto close
    :: t<NT && due[t]>up -> t=0; timers=0; b++; AGAIN_IS(0); goto bucket   /* nor is any behind it due */
    :: t<NT && due[t]<=up && !(row&B(t)) ->
#ifdef REACH
       if :: again && (fired&B(t)) -> SAW(AGAIN) :: else fi;
#endif
       t++; AGAIN_IS(0); goto timer
    :: t<NT && due[t]<=up && due[t]>0 && !last ->                /* its clock went back */
#ifdef NOTIME          /* mutation: the transaction does not ask what time it is */
       early=1; s=slot&B(t)
#else
       t++; AGAIN_IS(0); goto timer
#endif
    :: t<NT && due[t]<=up && (row&B(t)) -> s=slot&B(t)
    DIES
    fi };
#ifdef CHAIN
  atomic { if :: NEXT(t) -> l=list&B(bk[1]) :: else fi };
#endif
  atomic {
    if
    :: THERE(t) && SLOT_AS(t,s) && (!NEXT(t) || LIST_AS(1,l)) ->
       fire(t,s,l);
#ifndef NOTAKE         /* mutation: the timer stays, and its id is not taken */
       row=row&~B(t);
#endif
       listed(); early=0; s=0; l=0;
       if :: t++; AGAIN_IS(0) :: AGAIN_IS(1) fi; goto timer      /* the answer, or none */
    :: !(THERE(t) && SLOT_AS(t,s) && (!NEXT(t) || LIST_AS(1,l))) ->
#ifdef REACH
       if :: (fired&B(t)) -> SAW(REFUSED) :: else fi;
#endif
       early=0; s=0; l=0; AGAIN_IS(0); goto timer
#if POISON
    :: POISON&B(t) -> early=0; s=0; l=0                          /* it fails for good */
#endif
    DIES
    fi };
#if POISON
failed:
  atomic { if :: row&B(t) :: !(row&B(t)) -> t++; AGAIN_IS(0); goto timer DIES fi };
  atomic {
    if
    :: row&B(t) ->
#ifndef STAYS          /* mutation: it stays in its bucket, too */
       row=row&~B(t);
#endif
#ifndef FORGETS        /* mutation: it is taken from its bucket and put nowhere */
       aside=aside|B(t);
#endif
       if :: t++; AGAIN_IS(0); goto timer :: goto failed fi
    :: !(row&B(t)) -> goto failed
    DIES
    fi };
#endif
close:
  atomic {
    if
#ifdef ANYTIME         /* a bucket that is empty may go before its minute is over */
    :: (row&held[b])!=0 -> b++; goto bucket
    :: (row&held[b])==0
#else
    :: over[b]>up || (row&held[b])!=0 -> b++; goto bucket
    :: over[b]<=up && (row&held[b])==0
#endif
    DIES
    fi };
  atomic {
    if
    :: EMPTY(b) -> list=list&~B(b); SAW(CLOSED); listed();
       if :: b++; goto bucket :: goto close fi
    :: !EMPTY(b) -> goto close
    DIES
    fi };
end: false
}

#if POISON
proctype retrier() {                            /* of timer 0: as an owner fires, and it stays where it fails again */
  byte s, l; bit early;
again:
  atomic { if :: aside&B(0) -> s=slot&B(0) :: LEAVE fi };
#ifdef CHAIN
  l=list&B(bk[1]);
#endif
  atomic {
    if
    :: (aside&B(0)) && SLOT_AS(0,s) && (!NEXT(0) || LIST_AS(1,l)) ->
       fire(0,s,l); aside=aside&~B(0); SAW(RETRIED); listed()
    :: !((aside&B(0)) && SLOT_AS(0,s) && (!NEXT(0) || LIST_AS(1,l)))
    :: skip                                                      /* it has failed again */
    fi;
    s=0; l=0; goto again };
end: false
}

proctype operator() {                           /* drops timer 0 */
again:
  atomic { if :: aside&B(0) :: LEAVE fi };
  atomic {
    if
    :: aside&B(0) -> give_up(0); aside=aside&~B(0)
    :: !(aside&B(0))
    fi;
    goto again };
end: false
}
#endif

proctype time() { end: do :: tick<MAXTICK -> tick++ od }

init { atomic {
  run setter(0);
#if NS>1
  run setter(1);
#endif
  run canceller(0);
#if NK>1
  run canceller(1);
#endif
  run owner(0); run owner(1);
#if POISON
  run retrier(); run operator();
#endif
  run time() } }
#ifdef REACH           /* not vacuous: this must be violated */
active proctype reach() { assert(!(REACH)) }
#endif
